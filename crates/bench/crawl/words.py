"""Words of the parts of a page that are not its article: labels, menus, notices and advertisements, by language."""

LABELS = (
    "home about contact privacy terms login register search share comments related popular next previous published "
    "updated views ad sponsored accept reject subscribe rights by reply tags more top help"
).split()

_LABELS = {
    "en": "Home|About us|Contact|Privacy policy|Terms of use|Log in|Register|Search|Share|Comments|Related articles|"
    "Most read|Next|Previous|Published|Updated|views|Advertisement|Sponsored|Accept all|Reject all|Subscribe|"
    "All rights reserved|By|Reply|Tags|Read more|Back to top|Help",
    "de": "Startseite|Über uns|Kontakt|Datenschutz|Nutzungsbedingungen|Anmelden|Registrieren|Suche|Teilen|Kommentare|"
    "Mehr zum Thema|Meistgelesen|Weiter|Zurück|Veröffentlicht|Aktualisiert|Aufrufe|Anzeige|Gesponsert|Alle akzeptieren|"
    "Ablehnen|Abonnieren|Alle Rechte vorbehalten|Von|Antworten|Schlagwörter|Weiterlesen|Nach oben|Hilfe",
    "fr": "Accueil|À propos|Nous contacter|Confidentialité|Mentions légales|Se connecter|S’inscrire|Rechercher|Partager|"
    "Commentaires|À lire aussi|Les plus lus|Suivant|Précédent|Publié le|Mis à jour le|vues|Publicité|Sponsorisé|"
    "Tout accepter|Tout refuser|S’abonner|Tous droits réservés|Par|Répondre|Mots-clés|Lire la suite|Haut de page|Aide",
    "es": "Inicio|Quiénes somos|Contacto|Privacidad|Aviso legal|Iniciar sesión|Registrarse|Buscar|Compartir|Comentarios|"
    "Artículos relacionados|Lo más leído|Siguiente|Anterior|Publicado|Actualizado|visitas|Publicidad|Patrocinado|"
    "Aceptar todo|Rechazar|Suscribirse|Todos los derechos reservados|Por|Responder|Etiquetas|Leer más|Volver arriba|Ayuda",
    "it": "Home|Chi siamo|Contatti|Privacy|Note legali|Accedi|Registrati|Cerca|Condividi|Commenti|Articoli correlati|"
    "I più letti|Successivo|Precedente|Pubblicato|Aggiornato|visualizzazioni|Pubblicità|Sponsorizzato|Accetta tutti|"
    "Rifiuta|Iscriviti|Tutti i diritti riservati|Di|Rispondi|Tag|Continua a leggere|Torna su|Aiuto",
    "ru": "Главная|О проекте|Контакты|Конфиденциальность|Правила|Войти|Регистрация|Поиск|Поделиться|Комментарии|"
    "Похожие статьи|Популярное|Дальше|Назад|Опубликовано|Обновлено|просмотров|Реклама|Партнёрский материал|Принять все|"
    "Отклонить|Подписаться|Все права защищены|Автор|Ответить|Метки|Читать далее|Наверх|Помощь",
    "ja": "ホーム|会社概要|お問い合わせ|プライバシーポリシー|利用規約|ログイン|新規登録|検索|シェア|コメント|関連記事|人気記事|次へ|前へ|"
    "公開日|更新日|回表示|広告|スポンサー|すべて同意する|拒否する|購読する|無断転載を禁じます|著者|返信|タグ|続きを読む|ページの先頭へ|ヘルプ",
    "zh": "首页|关于我们|联系我们|隐私政策|使用条款|登录|注册|搜索|分享|评论|相关文章|热门文章|下一篇|上一篇|发布时间|更新时间|"
    "次浏览|广告|赞助内容|全部接受|全部拒绝|订阅|版权所有|作者|回复|标签|阅读全文|返回顶部|帮助",
    "ko": "홈|회사 소개|문의하기|개인정보 처리방침|이용 약관|로그인|회원 가입|검색|공유하기|댓글|관련 기사|많이 본 기사|다음|이전|"
    "입력|수정|조회|광고|제휴 콘텐츠|모두 동의|거부|구독하기|무단 전재 및 재배포 금지|글|답글|태그|더 보기|맨 위로|도움말",
}

#: Labels of each language, by their keys.
LABEL = {language: dict(zip(LABELS, line.split("|"), strict=True)) for language, line in _LABELS.items()}

#: Entries of a main menu; a site takes some of them.
SECTIONS = {
    "en": "Technology|Business|Science|World|Opinion|Culture|Travel|Health|Sport|Markets|Education|Environment|Video|"
    "Podcasts|Events|Jobs|Reviews|Guides|Downloads|Community|Magazine|Weather|Puzzles|Photography|Archive|Newsletters|"
    "Real estate|Motoring|Food and drink|Local news|Security|Hardware|Software|Gaming|Mobile|Cloud|Open source",
    "de": "Politik|Wirtschaft|Wissen|Netzwelt|Kultur|Reise|Gesundheit|Sport|Karriere|Auto|Technik|Software|Sicherheit|Foren|"
    "Tests|Ratgeber|Downloads|Newsletter|Archiv|Stellenmarkt",
    "fr": "International|Économie|Sciences|Planète|Culture|Sport|Santé|Voyage|Débats|Vidéos|Techno|Logiciels|Sécurité|"
    "Forums|Tutoriels|Emploi|Archives|Bourse",
    "es": "Internacional|Economía|Ciencia|Tecnología|Cultura|Deportes|Salud|Viajes|Opinión|Vídeos|Programas|Seguridad|"
    "Foros|Guías|Empleo|Hemeroteca",
    "it": "Esteri|Economia|Scienze|Tecnologia|Cultura|Sport|Salute|Viaggi|Opinioni|Video|Programmi|Sicurezza|Forum|Guide|"
    "Lavoro|Archivio",
    "ru": "Политика|Экономика|Наука|Технологии|Культура|Спорт|Здоровье|Путешествия|Мнения|Видео|Программы|Безопасность|"
    "Форум|Обзоры|Вакансии|Архив",
    "ja": "ニュース|経済|科学|テクノロジー|文化|スポーツ|健康|旅行|コラム|動画|ソフトウェア|セキュリティ|掲示板|ガイド|求人|アーカイブ",
    "zh": "新闻|财经|科技|体育|娱乐|教育|汽车|房产|旅游|健康|视频|软件下载|网络安全|论坛|教程|招聘|专题|图库|手机|数码",
    "ko": "정치|경제|과학|기술|문화|스포츠|건강|여행|오피니언|동영상|소프트웨어|보안|게시판|가이드|채용|자료실",
}
SECTIONS = {language: line.split("|") for language, line in SECTIONS.items()}

COOKIES = {
    "en": [
        "We value your privacy. We and our {n} partners store and access information on a device, such as cookies, and process "
        "personal data, such as unique identifiers and standard information sent by a device, for personalised "
        "advertising and content, measurement and audience research.",
        "This website uses cookies to improve your experience. We will assume that you are happy with this, but you can opt out if "
        "you wish.",
        "By continuing to use this site you agree to our use of cookies. Find out how to manage your settings.",
    ],
    "de": [
        "Wir und unsere {n} Partner verwenden Cookies und ähnliche Technologien, um Inhalte und Anzeigen zu personalisieren. "
        "Ihre Einwilligung können Sie jederzeit in den Einstellungen widerrufen."
    ],
    "fr": ["Avec votre accord, nos {n} partenaires et nous utilisons des cookies pour mesurer l’audience et afficher des publicités "
           "personnalisées. Vous pouvez changer d’avis à tout moment."],
    "es": ["Utilizamos cookies propias y de {n} terceros para analizar nuestros servicios y mostrarte publicidad relacionada con "
           "tus preferencias."],
    "it": ["Noi e {n} terze parti selezionate utilizziamo cookie o tecnologie simili per finalità tecniche e, con il tuo consenso, "
           "anche per altre finalità."],
    "ru": ["Мы используем файлы cookie, чтобы сайт работал лучше. Продолжая пользоваться сайтом, вы соглашаетесь с обработкой данных."],
    "ja": ["当サイトでは、利便性の向上とアクセス解析のためにクッキーを使用しています。詳しくはプライバシーポリシーをご覧ください。"],
    "zh": ["我们使用 Cookie 来改善您的浏览体验。继续使用本网站即表示您同意我们使用 Cookie。"],
    "ko": ["이 사이트는 더 나은 서비스를 제공하기 위해 쿠키를 사용합니다. 계속 이용하시면 쿠키 사용에 동의하는 것으로 간주합니다."],
}

NEWSLETTER = {
    "en": [
        "Get the most important stories of the week in your inbox every Friday morning. No spam, unsubscribe at any time.",
        "Join {n},000 readers: our newsletter sums up what matters, in five minutes.",
    ],
    "de": ["Das Wichtigste der Woche, jeden Freitag kostenlos in Ihrem Postfach. Abmeldung jederzeit möglich."],
    "fr": ["Chaque vendredi, l’essentiel de la semaine dans votre boîte de réception. Désinscription à tout moment."],
    "es": ["Lo más importante de la semana, cada viernes en tu correo. Puedes darte de baja cuando quieras."],
    "it": ["Le notizie più importanti della settimana nella tua casella di posta, ogni venerdì mattina."],
    "ru": ["Главное за неделю — каждую пятницу в вашем почтовом ящике. Отписаться можно в любой момент."],
    "ja": ["毎週金曜日の朝、今週の重要なニュースをメールでお届けします。登録は無料です。"],
    "zh": ["每周五早晨，把本周最重要的内容发送到您的邮箱。可随时退订。"],
    "ko": ["매주 금요일 아침, 한 주의 주요 소식을 메일로 보내 드립니다. 언제든지 해지할 수 있습니다."],
}

#: Small print that stands on every page of a site.
NOTICES = {
    "en": [
        "{site} may receive a commission if you buy something through links on this page. This does not influence what we write, and "
        "the price that you pay stays the same. Prices were correct when this page was published.",
        "Nothing on this page is legal, financial or medical advice. While {site} takes care that the information is accurate and "
        "up to date, it accepts no liability for errors or omissions, nor for the content of external sites to which it links.",
        "You can return most items in their original condition within thirty days of receipt for a full refund. Delivery is free for "
        "orders of more than twenty-five euros; express delivery and delivery to islands cost extra. The statutory warranty applies.",
        "{site} is a member of the independent press council. If you want to complain about something that we published, write to the "
        "readers’ editor. Corrections appear on the page in question and in the daily list of corrections and clarifications.",
        "Opinions expressed in comments are those of their authors and not of {site}. Be polite, stay on topic, and do not post personal "
        "data of others. Posts that break the rules are removed by our moderators without further notice.",
        "This site is protected against abuse by an automatic service; its privacy policy and terms of service apply. To delete your "
        "account and all data that belong to it, open the settings and follow the instructions.",
        "Our mission is to make practical knowledge available to everybody. {site} is financed by its readers: if you find it useful, "
        "please consider a donation. Regular supporters receive our printed yearbook and an invitation to the annual meeting.",
        "Data are delayed by at least fifteen minutes and are provided for information only. Times are those of the local time zone. "
        "Reproduction of all or part of this page without prior written permission of {site} is prohibited.",
    ],
    "zh": [
        "免责声明：本站部分内容来自网友投稿或网络转载，仅代表作者个人观点，与{site}立场无关。如涉及版权问题，请在三十日内与我们联系，我们将尽快处理。",
        "本网站所刊载的信息仅供参考，不构成任何投资或法律建议。未经{site}书面授权，任何单位和个人不得转载、摘编或以其他方式使用上述作品。",
    ],
    "ko": [
        "{site}의 모든 콘텐츠는 저작권법의 보호를 받으며 무단 전재, 복사, 배포를 금합니다. 제보 및 정정 보도 문의는 독자 권익 위원회로 연락해 주시기 바랍니다.",
    ],
    "ja": ["{site}に掲載されている記事、写真、図表の無断転載を禁じます。掲載情報の正確性には万全を期していますが、利用により生じた損害について当サイトは責任を負いません。"],
}

GOODS = {
    "en": "standing desks|running shoes|noise-cancelling headphones|solar panels|car insurance|meal kits|garden furniture|winter "
    "tyres|cloud hosting|language courses|city breaks|contact lenses|robot vacuums|mattresses|espresso machines|pet food|"
    "home loans|electric bikes|smart thermostats|hearing aids|business broadband|accounting software|hiking boots|"
    "cruises|security cameras|storage boxes|dental implants|phone plans|wine by the case|kitchen knives|office chairs|tax returns",
    "de": "Laufschuhe|Solaranlagen|Kfz-Versicherungen|Kaffeevollautomaten|Winterreifen|Matratzen|Sprachkurse|E-Bikes|Bürostühle|"
    "Handytarife|Gartenmöbel|Hörgeräte",
    "fr": "chaussures de course|panneaux solaires|assurances auto|machines à café|matelas|cours de langue|vélos électriques|"
    "forfaits mobiles|meubles de jardin|lunettes de vue",
    "es": "zapatillas|placas solares|seguros de coche|cafeteras|colchones|cursos de idiomas|bicicletas eléctricas|tarifas móviles|"
    "muebles de jardín|gafas de sol",
    "it": "scarpe da corsa|pannelli solari|assicurazioni auto|macchine per il caffè|materassi|corsi di lingua|biciclette elettriche|"
    "tariffe mobili|mobili da giardino|occhiali da sole",
    "ru": "кроссовки|зимние шины|матрасы|кофемашины|языковые курсы|велосипеды|офисные кресла|страховки|садовая мебель|наушники",
    "ja": "ランニングシューズ|太陽光パネル|自動車保険|コーヒーメーカー|マットレス|英会話教室|電動自転車|オフィスチェア|格安スマホ|掃除ロボット",
    "zh": "跑步鞋|太阳能板|汽车保险|咖啡机|床垫|英语课程|电动自行车|办公椅|手机套餐|扫地机器人|净水器|儿童书桌",
    "ko": "운동화|태양광 패널|자동차 보험|커피 머신|매트리스|영어 강좌|전기 자전거|사무용 의자|알뜰폰 요금제|로봇 청소기",
}
GOODS = {language: line.split("|") for language, line in GOODS.items()}

#: Headline and text of an advertisement.
ADS = {
    "en": [
        ("Save up to {n}% on {goods}", "Only until {day}: {brand} delivers free of charge and takes everything back for {m} days."),
        ("Homeowners in your area are switching to {brand}", "See why {n},000 customers rate our {goods} five stars. Get a quote in two minutes."),
        ("{brand}: {goods} from £{n}", "Rated excellent by independent testers {m} years in a row. Order today, delivered tomorrow."),
        ("{m} mistakes to avoid when you buy {goods}", "Experts of {brand} explain what the shops will not tell you."),
        ("Why everybody talks about {goods} this winter", "Doctors were sceptical, until they saw these results. {brand} offers a trial for {n} pence a day."),
        ("Free guide: {goods} compared", "Download the {brand} report with {n} models side by side. No registration needed."),
        ("Your neighbours pay less for {goods}", "Compare {m} providers with {brand} and keep the difference: £{n} a year on average."),
        ("The {brand} sale has started", "Thousands of bargains, {goods} reduced by {n}%, while stocks last. Members shop from {m} o’clock."),
    ],
    "de": [
        ("Bis zu {n} % Rabatt auf {goods}", "Nur noch wenige Tage: {brand} liefert kostenlos und nimmt {m} Tage lang alles zurück."),
        ("{brand}: {goods} ab {n} Euro", "Von unabhängigen Testern empfohlen. Heute bestellt, morgen geliefert."),
    ],
    "fr": [
        ("Jusqu’à {n} % de remise sur les {goods}", "Plus que {m} jours : {brand} livre gratuitement partout en France."),
        ("{brand} : {goods} dès {n} euros", "Recommandé par des milliers de clients. Commandez aujourd’hui, livré demain."),
    ],
    "es": [
        ("Hasta un {n} % de descuento en {goods}", "Solo durante {m} días: {brand} te lo envía gratis a casa."),
        ("{brand}: {goods} desde {n} euros", "Recomendado por miles de clientes. Pide hoy y recíbelo mañana."),
    ],
    "it": [
        ("Fino al {n} % di sconto su {goods}", "Ancora {m} giorni: {brand} consegna gratis in tutta Italia."),
        ("{brand}: {goods} da {n} euro", "Consigliato da migliaia di clienti. Ordina oggi, ricevi domani."),
    ],
    "ru": [
        ("Скидка до {n} % на {goods}", "Ещё {m} дней: {brand} доставит бесплатно по всей стране."),
        ("{brand}: {goods} от {n} рублей", "Тысячи довольных покупателей. Закажите сегодня, получите завтра."),
    ],
    "ja": [
        ("{goods}が最大{n}％オフ", "あと{m}日間限定、{brand}なら全国送料無料。満足できなければ全額返金いたします。"),
        ("{brand}の{goods}、月々{n}円から", "{m}年連続で顧客満足度一位。今すぐ無料でお見積もり。"),
    ],
    "zh": [
        ("{goods}限时优惠，低至{n}元", "仅剩{m}天，{brand}全国包邮，七天无理由退货，数量有限先到先得。"),
        ("{brand}{goods}连续{m}年销量领先", "已有{n}万家庭选择，立即免费领取报价和样品。"),
    ],
    "ko": [
        ("{goods} 최대 {n}% 할인", "단 {m}일 동안 {brand}에서 전국 무료 배송으로 만나 보세요."),
        ("{brand} {goods} 월 {n}원부터", "{m}년 연속 고객 만족도 1위. 지금 바로 무료 상담을 신청하세요."),
    ],
}

BRANDS = (
    "Alderwick|Brightholm|Castellan|Dunmore & Sons|Evenlode|Fjordline|Greyfen|Hollowell|Inverloch|Juniper Lane|Kestrelry|Larkspur|"
    "Marchmont|Northgate|Oakhurst|Pellworth|Quillfeather|Ravensby|Silverbrook|Thornbury|Umberly|Valemont|Westerham|Yarrow|Zephyrine"
).split("|")

GIVEN = (
    "Ada|Bela|Carmen|Dmitri|Elena|Farid|Greta|Hugo|Ines|Jonas|Kavya|Liam|Marta|Nils|Olga|Priya|Quentin|Rosa|Samir|Tessa|Ursula|"
    "Viktor|Wanda|Ximena|Yusuf|Zoe"
).split("|")
FAMILY = (
    "Abbott|Bergström|Castro|Dvorak|Eriksen|Fontaine|Gallagher|Haddad|Ivanova|Jansen|Kowalski|Lindqvist|Moreau|Nakamura|Okafor|"
    "Pereira|Quigley|Rossi|Schneider|Tanaka|Ustinov|Varga|Whitfield|Xu|Yilmaz|Zimmermann"
).split("|")
PLACES = (
    "Aberdeen|Bologna|Cork|Dresden|Eindhoven|Funchal|Ghent|Haarlem|Izmir|Jena|Kaunas|Leeds|Malmö|Nantes|Oslo|Porto|Quito|Riga|"
    "Sofia|Turin|Utrecht|Vigo|Warsaw|York|Zadar"
).split("|")

#: What readers write under an article.
REMARKS = {
    "en": [
        "Thanks, this was exactly what I was looking for.",
        "I tried this on two machines and it only worked on one of them. Am I missing something?",
        "Great write-up. The part in the middle deserves an article of its own.",
        "I disagree with the conclusion, but the facts are well presented.",
        "Does anybody know if this still holds for the newest version?",
        "We have been doing it this way for years, and never had a problem.",
        "There is a small mistake in the third paragraph, otherwise a good overview.",
        "First time I see this explained without jargon. Bookmarked.",
        "Could you publish the numbers behind this, please?",
        "It took me a whole afternoon to find this page. Why is the documentation so hard to search?",
        "My colleague solved the same thing with twelve lines, but this is more readable.",
        "Not convinced. What about users who cannot upgrade?",
        "@{name} it depends on your settings; have a look at the second example.",
        "+1, same here since last {day}.",
        "Moderator’s note: some comments were removed because they broke our rules.",
        "I have printed it for the whole team.",
    ],
    "de": ["Danke, genau das habe ich gesucht.", "Bei mir klappt das leider nicht, hat jemand eine Idee?", "Sehr guter Artikel, weiter so!",
           "Im dritten Absatz ist ein kleiner Fehler.", "Das machen wir seit Jahren so."],
    "fr": ["Merci, c’est exactement ce que je cherchais.", "Chez moi cela ne marche pas, une idée ?", "Très bon article, bravo.",
           "Il y a une petite erreur au troisième paragraphe."],
    "es": ["Gracias, justo lo que buscaba.", "A mí no me funciona, ¿alguna idea?", "Muy buen artículo.", "Hay un pequeño error en el tercer párrafo."],
    "it": ["Grazie, proprio quello che cercavo.", "A me non funziona, qualche idea?", "Ottimo articolo.", "C’è un piccolo errore nel terzo paragrafo."],
    "ru": ["Спасибо, именно это я и искал.", "У меня не работает, есть идеи?", "Отличная статья.", "В третьем абзаце опечатка."],
    "ja": ["とても参考になりました。", "私の環境では動きませんでした。", "わかりやすい説明をありがとうございます。", "三段落目に誤字があります。"],
    "zh": ["写得很好，收藏了。", "我这里运行不了，请问是什么原因？", "感谢楼主分享。", "第三段有个错别字。", "顶一下。"],
    "ko": ["좋은 글 감사합니다.", "저는 잘 안 되네요. 이유가 뭘까요?", "도움이 많이 되었습니다.", "세 번째 문단에 오타가 있습니다."],
}

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

#: How a date is written.
DATES = {
    "en": "{d} {month} {y}", "de": "{d:02}.{m:02}.{y}", "fr": "{d:02}/{m:02}/{y}", "es": "{d:02}/{m:02}/{y}", "it": "{d:02}/{m:02}/{y}",
    "ru": "{d:02}.{m:02}.{y}", "ja": "{y}年{m}月{d}日", "zh": "{y}年{m}月{d}日", "ko": "{y}년 {m}월 {d}일",
}
