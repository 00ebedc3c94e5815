"""The sites of the crawl. Some share a template, as sites of one content management system do."""

from .page import Site
from .templates import apps, community, press, reference

SITES = [
    Site("www.meridian-review.example", "The Meridian Review", press.magazine, kilobytes=90),
    Site("www.harbour-post.example", "Harbour Post", press.daybreak, kilobytes=60),
    Site("greengazette.example", "Green Gazette", press.daybreak, kilobytes=64),
    Site("elfarodigital.example", "El Faro Digital", press.daybreak, "es", kilobytes=66, share=0.6),
    Site("www.daily-courant.example", "The Daily Courant", press.broadsheet, kilobytes=110, path="/story/{number}/{slug}"),
    Site("www.quotidien-ouest.example", "Le Quotidien de l’Ouest", press.broadsheet, "fr", "windows-1252", 90, 0.4, "/article/{slug}_{number}.html"),
    Site("plainnotes.example", "Plain Notes", press.notebook, kilobytes=0, path="/{y}/{m:02}/{slug}/"),
    Site("docs.cobalt-db.example", "Cobalt documentation", reference.manual, kilobytes=12, path="/en/stable/{slug}.html"),
    Site("docs.tinwork.example", "Tinwork manual", reference.manual, kilobytes=14, path="/latest/{slug}.html"),
    Site("en.opencompendium.example", "Open Compendium", reference.wiki, kilobytes=20, path="/wiki/{slug}"),
    Site("lists.brassworks.example", "Brassworks-dev", reference.mailing_list, "en", "iso-8859-1", 0, path="/pipermail/{y}-{m}/{number}.html"),
    Site("www.standards-office.example", "Office for Standards", reference.institution, "en", "windows-1252", 40, path="/page.aspx?id={number}"),
    Site("talk.workbench.example", "Workbench Talk", community.forum, kilobytes=10, path="/viewtopic.php?t={number}"),
    Site("ask.workbench.example", "Ask Workbench", community.questions, kilobytes=80, path="/questions/{number}/{slug}"),
    Site("www.fernshop.example", "Fernshop", community.shop, kilobytes=130, path="/dp/{number}/{slug}"),
    Site("home.oldwires.example", "Old Wires Home Page", community.tables, "en", "windows-1252", 2, path="/~wires/{slug}.htm"),
    Site("www.heimseiten.example", "Heimseiten", community.tables, "de", "iso-8859-1", 2, 0.3, "/texte/{slug}.html"),
    Site("stacklane.example", "Stacklane", apps.framework, kilobytes=100, path="/posts/{slug}-{number}"),
    Site("corsivo.example", "Corsivo", apps.framework, "it", kilobytes=80, share=0.5, path="/p/{slug}-{number}"),
    Site("www.xinzhi-portal.example", "新知门户", apps.portal, "zh", "gb18030", 60, 1.2, "/a/{y}{m:02}/{number}.shtml"),
    Site("zhidao.xuetang.example", "学堂", apps.framework, "zh", kilobytes=70, path="/p/{number}"),
    Site("www.jouhou-hiroba.example", "情報ひろば", apps.portal, "ja", "shift_jis", 40, 0.2, "/articles/{number}.html"),
    Site("www.sosik-madang.example", "소식마당", apps.portal, "ko", "euc-kr", 50, 1.2, "/news/view.php?no={number}"),
    Site("forum.masterskaya.example", "Мастерская", community.forum, "ru", "windows-1251", 8, 0.4, "/showthread.php?t={number}"),
]
