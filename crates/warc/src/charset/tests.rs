//! Texts in each encoding of the standard, declared rightly, wrongly, and not at all.

use encoding_rs::*;

use super::*;

const RUSSIAN: &str = "Вчера вечером мы долго сидели на берегу реки и говорили о том, как изменился наш город за последние двадцать лет. \
    Старые дома на площади снесли, вместо них построили магазины, и только библиотека стоит на прежнем месте. Моя сестра помнит ещё \
    рынок, где по воскресеньям продавали яблоки, мёд и книги.";
const UKRAINIAN: &str = "Учора ввечері ми довго сиділи на березі річки й розмовляли про те, як змінилося наше місто за останні двадцять \
    років. Старі будинки на площі знесли, натомість збудували крамниці, і лише бібліотека стоїть на тому самому місці.";
const GREEK: &str = "Χθες το βράδυ καθίσαμε πολλή ώρα στην όχθη του ποταμού και μιλούσαμε για το πώς άλλαξε η πόλη μας τα τελευταία \
    είκοσι χρόνια. Τα παλιά σπίτια της πλατείας γκρεμίστηκαν και μόνο η βιβλιοθήκη έμεινε στη θέση της.";
const HEBREW: &str = "אתמול בערב ישבנו זמן רב על גדת הנהר ודיברנו על השינויים שעברה העיר שלנו בעשרים השנים האחרונות. הבתים הישנים \
    בכיכר נהרסו, במקומם נבנו חנויות, ורק הספרייה עומדת במקומה.";
const ARABIC: &str = "جلسنا مساء أمس طويلا على ضفة النهر وتحدثنا عن تغير مدينتنا في العشرين سنة الأخيرة. هدمت البيوت القديمة في \
    الساحة وبنيت مكانها متاجر، ولم يبق في مكانه إلا المكتبة التي كنا نقرأ فيها الكتب كل يوم.";
const THAI: &str = "เมื่อวานตอนเย็นเรานั่งอยู่ริมแม่น้ำเป็นเวลานานและคุยกันว่าเมืองของเราเปลี่ยนไปอย่างไรในช่วงยี่สิบปีที่ผ่านมา บ้านเก่าที่จัตุรัสถูกรื้อ \
    และมีร้านค้าขึ้นมาแทน เหลือแต่ห้องสมุดที่ยังอยู่ที่เดิม";
const CHINESE: &str = "昨天晚上我们在河边坐了很久，谈论我们的城市在过去二十年里发生的变化。广场上的老房子都拆了，盖起了商店，只有图书馆还在原来的地方。\
    我姐姐还记得星期天卖苹果和旧书的市场。";
const TAIWANESE: &str = "昨天晚上我們在河邊坐了很久，談論我們的城市在過去二十年裡發生的變化。廣場上的老房子都拆了，蓋起了商店，只有圖書館還在原來的地方。\
    我姊姊還記得星期天賣蘋果和舊書的市場。";
const JAPANESE: &str = "昨日の夕方、私たちは川岸に長いあいだ座って、この二十年で町がどのように変わったかを話しました。広場の古い家は取り壊されて店になり、\
    図書館だけがもとの場所に残っています。姉は日曜日に本やリンゴを売っていた市場をまだ覚えています。";
const KOREAN: &str = "어제 저녁 우리는 강가에 오랫동안 앉아서 지난 이십 년 동안 우리 도시가 어떻게 변했는지 이야기했습니다. 광장의 오래된 집들은 \
    헐리고 상점이 들어섰으며 도서관만 제자리에 남아 있습니다.";
const POLISH: &str = "Wczoraj wieczorem długo siedzieliśmy nad brzegiem rzeki i rozmawialiśmy o tym, jak zmieniło się nasze miasto przez \
    ostatnie dwadzieścia lat. Stare domy na placu zburzono, zbudowano sklepy, i tylko książnica stoi na swoim miejscu. Moja siostra \
    pamięta jeszcze targ, na którym w niedzielę sprzedawano jabłka, miód i używane książki; dziś jeżdżą tam tylko ciężarówki.";
const CZECH: &str = "Včera večer jsme dlouho seděli na břehu řeky a mluvili o tom, jak se naše město za posledních dvacet let změnilo. \
    Staré domy na náměstí zbourali, místo nich postavili obchody a jen knihovna stojí na svém místě. Moje sestra si ještě pamatuje trh.";
const TURKISH: &str = "Dün akşam nehrin kıyısında uzun süre oturduk ve şehrimizin son yirmi yılda nasıl değiştiğini konuştuk. Meydandaki \
    eski evler yıkıldı, yerlerine dükkânlar yapıldı, yalnız kütüphane eski yerinde duruyor. Kız kardeşim pazar günleri elma satılan \
    çarşıyı hâlâ hatırlıyor; şimdi orada yalnızca büyük kamyonlar geçiyor, çocuklar da artık sokakta oynamıyor.";
const LITHUANIAN: &str = "Vakar vakare ilgai sėdėjome ant upės kranto ir kalbėjomės apie tai, kaip mūsų miestas pasikeitė per pastaruosius \
    dvidešimt metų. Seni namai aikštėje nugriauti, vietoj jų pastatytos parduotuvės, tik biblioteka tebestovi savo vietoje. Sesuo dar \
    prisimena turgų, kuriame šeštadieniais žmonės pirkdavo obuolius, medų ir senas knygas.";
/// In the form of windows-1258: a tone stands behind its letter.
const VIETNAMESE: &str = "Tô\u{301}i hôm qua chúng tôi ngô\u{300}i râ\u{301}t lâu bên bơ\u{300} sông và nói vê\u{300} viê\u{323}c thành phô\u{301} đa\u{303} thay đô\u{309}i như thê\u{301} nào trong hai mươi năm qua.";
const FRENCH: &str = "Hier soir, nous sommes restés longtemps assis au bord de la rivière à parler de la façon dont notre ville a changé \
    ces vingt dernières années. Les vieilles maisons de la place ont été démolies, des magasins ont été bâtis, et seule la \
    bibliothèque est restée à sa place. Ma sœur se souvient encore du marché où l'on vendait des pommes, du miel et de vieux livres; \
    là-bas, l'été, les élèves étaient très fatigués après la fête, mais ils y allaient déjà.";
const MALTESE: &str = "Il-bieraħ filgħaxija għamilna ħafna ħin bilqiegħda ħdejn ix-xmara u tkellimna dwar kif inbidlet il-belt tagħna.";
const SAMI: &str = "Ikte eahkedis mii čohkkáimet guhká jogagáttis ja háladeimmet das mo min gávpot lea rievdan maŋimuš jagiid.";
const WELSH: &str = "Neithiwr buom yn eistedd am amser hir ar lan yr afon yn siarad am y tŵr, y dŵr a'r ŷd yn ein tref ni.";
const ROMANIAN: &str = "Aseară am stat mult timp pe malul râului și am vorbit despre cum s-a schimbat orașul nostru în acești ani.";

/// The encodings of the standard that can be written, with a text; and whether the text is found without a declaration.
fn texts() -> Vec<(&'static Encoding, &'static str, bool)> {
    vec![
        (IBM866, RUSSIAN, true),
        (ISO_8859_2, POLISH, true),
        (ISO_8859_2, CZECH, true),
        (ISO_8859_3, MALTESE, false),
        (ISO_8859_4, LITHUANIAN, true),
        (ISO_8859_5, RUSSIAN, true),
        (ISO_8859_6, ARABIC, true),
        (ISO_8859_7, GREEK, true),
        (ISO_8859_8, HEBREW, true),
        (ISO_8859_8_I, HEBREW, true),
        (ISO_8859_10, SAMI, false),
        (ISO_8859_13, LITHUANIAN, true),
        (ISO_8859_14, WELSH, false),
        (ISO_8859_15, FRENCH, false),
        (ISO_8859_16, ROMANIAN, false),
        (KOI8_R, RUSSIAN, true),
        (KOI8_U, UKRAINIAN, true),
        (MACINTOSH, FRENCH, true),
        (WINDOWS_874, THAI, true),
        (WINDOWS_1250, POLISH, true),
        (WINDOWS_1250, CZECH, true),
        (WINDOWS_1251, RUSSIAN, true),
        (WINDOWS_1251, UKRAINIAN, true),
        (WINDOWS_1252, FRENCH, true),
        (WINDOWS_1253, GREEK, true),
        (WINDOWS_1254, TURKISH, true),
        (WINDOWS_1255, HEBREW, true),
        (WINDOWS_1256, ARABIC, true),
        (WINDOWS_1257, LITHUANIAN, true),
        (WINDOWS_1258, VIETNAMESE, true),
        (X_MAC_CYRILLIC, UKRAINIAN, false),
        (GBK, CHINESE, true),
        (GB18030, CHINESE, true),
        (BIG5, TAIWANESE, true),
        (EUC_JP, JAPANESE, true),
        (ISO_2022_JP, JAPANESE, true),
        (SHIFT_JIS, JAPANESE, true),
        (EUC_KR, KOREAN, true),
    ]
}

/// The bytes of a text in an encoding that can write it.
fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, used, has_errors) = encoding.encode(text);
    assert!(!has_errors && used == encoding, "{}", encoding.name());
    bytes.into_owned()
}

fn read(bytes: &[u8], content_type: &str) -> String {
    let hints = Hints {
        content_type: Some(content_type.as_bytes()),
        ..Hints::default()
    };
    decode(bytes, &hints, &mut String::new()).text.to_owned()
}

#[test]
fn texts_are_read_whatever_is_declared() {
    let mut wrong = Vec::new();
    for (encoding, text, is_known) in texts() {
        let bytes = encoded(encoding, text);
        let name = encoding.name();
        let mut check = |declared: &str, what: &str, bytes: &[u8], expected: &str| {
            let found = read(bytes, declared);
            if found != expected {
                wrong.push(format!("{name}, {what} {declared}: {found}"));
            }
        };
        check(&format!("text/plain; charset={name}"), "", &bytes, text);
        if is_known {
            for declared in ["utf-8", "iso-8859-1"] {
                check(&format!("text/plain; charset={declared}"), "", &bytes, text);
            }
            check("text/plain", "", &bytes, text);
        }
        // One bad byte costs one character.
        let (utf_8, last) = (text.as_bytes(), text.chars().next_back());
        let cut = &text[..text.len() - last.map_or(0, char::len_utf8)];
        let multi = format!("{cut}é");
        let broken = &multi.as_bytes()[..multi.len() - 1];
        for declared in [format!("text/plain; charset={name}"), "text/plain".into()] {
            check(&declared, "UTF-8", utf_8, text);
            check(&declared, "UTF-8, cut", broken, &format!("{cut}\u{fffd}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_character_that_is_cut_is_replaced() {
    for (encoding, text, _) in texts() {
        let bytes = encoded(encoding, text);
        let mut end = text.len();
        let without_last = loop {
            end -= 1;
            if text.is_char_boundary(end) {
                break &text[..end];
            }
        };
        let whole = encoded(encoding, without_last);
        if bytes.len() - whole.len() < 2 || encoding == ISO_2022_JP {
            continue;
        }
        let found = read(&bytes[..bytes.len() - 1], "text/plain");
        assert!(
            found.starts_with(without_last),
            "{}: {found}",
            encoding.name()
        );
        // A wrong byte in the middle.
        let middle = text.char_indices().nth(text.chars().count() / 2);
        let (start, end) = text.split_at(middle.map_or(0, |(at, _)| at));
        let broken = [
            &encoded(encoding, start)[..],
            b"\xff\n",
            &encoded(encoding, end),
        ]
        .concat();
        let found = read(&broken, "text/plain");
        assert_eq!(
            found.replacen("\u{fffd}\n", "", 1),
            text,
            "{}",
            encoding.name()
        );
    }
}

#[test]
fn utf_16_is_known_by_its_zeros() {
    for text in [
        FRENCH,
        RUSSIAN,
        &format!("{CHINESE}\n a b c d e f\n"),
        "id,text\n1,one two three\n",
    ] {
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            for declared in ["text/plain", "text/plain; charset=utf-8"] {
                assert_eq!(read(&bytes, declared), text);
            }
        }
    }
}

#[test]
fn what_the_user_names_is_read_so() {
    let hints = Hints {
        content_type: Some(b"text/plain; charset=utf-8"),
        charset: Some(MACINTOSH),
        ..Hints::default()
    };
    let (text, bytes) = (FRENCH, encoded(MACINTOSH, FRENCH));
    assert_eq!(decode(&bytes, &hints, &mut String::new()).text, text);
}

#[test]
fn a_declaration_that_fits_counts_on_short_pages() {
    for (encoding, text, _) in texts() {
        let start: String = text.chars().take(40).collect();
        let bytes = encoded(encoding, &start);
        let declared = format!("text/html; charset={}", encoding.name());
        assert_eq!(read(&bytes, &declared), start, "{}", encoding.name());
    }
}

/// Alone, the first would be Chinese, and the others Lithuanian, Western, Czech and Western.
#[test]
fn short_pages_are_read_by_their_language() {
    for (encoding, language, text) in [
        (WINDOWS_874, "th", "สวัสดี"),
        (WINDOWS_874, "th-TH", "ไทย"),
        (WINDOWS_1254, "tr", "Haberler: şehir, ğ"),
        (WINDOWS_1257, "lt", "Žinios šiandien"),
        (ISO_8859_2, "hu", "Hírek őszi"),
    ] {
        let page = format!("<html lang={language}><p>{text}</p>");
        let bytes = encoded(encoding, &page);
        let hints = Hints {
            is_markup: true,
            url: "http://a.example/",
            ..Hints::default()
        };
        assert_eq!(decode(&bytes, &hints, &mut String::new()).text, page);
    }
}

#[test]
fn the_language_of_a_page_counts_more_than_the_country_of_its_url() {
    for (encoding, language, country, text) in [
        (
            WINDOWS_1252,
            "es",
            "pl",
            "¿Dónde está la biblioteca? Está allí, detrás del jardín botánico.",
        ),
        (
            WINDOWS_1252,
            "es",
            "com",
            "¿Dónde está la biblioteca? Está allí, detrás del jardín botánico.",
        ),
        (
            WINDOWS_1252,
            "pt-BR",
            "hu",
            "Você já viu o avô? Está lá fora, à sombra, há três horas.",
        ),
        (
            WINDOWS_1252,
            "fr",
            "cz",
            "Hier soir, les voisins ont dressé une longue table et invité toute la rue à dîner.",
        ),
        (
            WINDOWS_1252,
            "de",
            "cn",
            "Die neue Brücke über den Fluss wird im Frühjahr eröffnet, sagte der Bürgermeister.",
        ),
        (
            WINDOWS_1252,
            "sv",
            "jp",
            "I går kväll dukade grannarna ett långt bord i trädgården och bjöd hela gatan på middag.",
        ),
        (
            WINDOWS_1252,
            "is",
            "pl",
            "Í gærkvöldi lögðu nágrannarnir langt borð í garðinum og buðu allri götunni í kvöldmat.",
        ),
        (
            WINDOWS_1252,
            "en",
            "gr",
            "The mayor’s plan is “ready”, she said – and it won’t cost the city more than it can afford.",
        ),
        (
            WINDOWS_1252,
            "en-GB",
            "kr",
            "The café was closed on Monday, but the owner opened it again on Tuesday.",
        ),
        (
            WINDOWS_1250,
            "",
            "rs",
            "Sinoć su komšije postavile dugačak sto u bašti i pozvale celu ulicu na večeru.",
        ),
        (
            WINDOWS_1251,
            "",
            "rs",
            "Стари људи седе испред куће и причају о граду.",
        ),
    ] {
        let page = format!("<html lang='{language}'><p>{text}</p>");
        let bytes = encoded(encoding, &page);
        let url = format!("http://a.{country}/");
        let hints = Hints {
            is_markup: true,
            url: &url,
            ..Hints::default()
        };
        assert_eq!(decode(&bytes, &hints, &mut String::new()).text, page);
    }
}

/// Most of these are UTF-8 by chance; as UTF-8, some are Latin letters.
#[test]
fn a_few_characters_are_read_as_an_encoding_of_cjk_that_is_declared() {
    let simplified = [
        "No. 5 一",
        "3每 km",
        "abc 没 def",
        "A-1 目木",
        "欧女 OK",
        "么每没 7",
        "每女母目 abc",
    ];
    for (encoding, texts) in [
        (GBK, simplified),
        (GB18030, simplified),
        (
            BIG5,
            [
                "No. 5 簿",
                "3羅 km",
                "abc 警 def",
                "A-1 警覺",
                "覺羅 OK",
                "籠籠簿 7",
                "議警羅覺 abc",
            ],
        ),
        (
            EUC_JP,
            [
                "No. 5 町",
                "3店 km",
                "abc 店 def",
                "A-1 天店",
                "単頂 OK",
                "頂店町 7",
                "丹頂朝潮 abc",
            ],
        ),
        (
            SHIFT_JIS,
            [
                "No. 5 燿、",
                "3ﾄｱ km",
                "abc 本 def",
                "A-1 東京",
                "ﾄｱ OK",
                "図書館 7",
                "昨日の朝 abc",
            ],
        ),
        (
            EUC_KR,
            [
                "No. 5 책",
                "3치 km",
                "abc 큰 def",
                "A-1 타치",
                "카카 OK",
                "크타치 7",
                "책카큰치 abc",
            ],
        ),
    ] {
        for text in texts {
            let declared = format!("text/plain; charset={}", encoding.name());
            let found = read(&encoded(encoding, text), &declared);
            assert_eq!(found, text, "{}", encoding.name());
        }
    }
}

#[test]
fn a_few_letters_in_utf_8_are_read_whatever_is_declared() {
    for text in [
        "Le café est très fermé à Noël",
        "The café is closed",
        "Der Fluß führt Öl über",
        "Die Größe des Öls",
        "Tiếng Việt",
        "It’s a “test”",
    ] {
        for declared in ["gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr"] {
            let found = read(text.as_bytes(), &format!("text/plain; charset={declared}"));
            assert_eq!(found, text, "{declared}");
        }
    }
}

#[test]
fn macintosh_is_known_by_its_letters() {
    for (encoding, text) in [
        (
            MACINTOSH,
            "Die schönen Häuser über dem Fluß, während die Grüße später kämen",
        ),
        (
            MACINTOSH,
            "Não há razão para começar a viagem amanhã; a situação é difícil",
        ),
        (
            WINDOWS_1252,
            "Hier, le cœur de l’été… des œufs, des sœurs, un vœu et un nœud",
        ),
    ] {
        assert_eq!(read(&encoded(encoding, text), "text/plain"), text);
    }
}

#[test]
fn a_few_signs_of_typography_are_read() {
    let text = "It’s a “test” – the café à la carte…";
    let bytes = encoded(WINDOWS_1252, text);
    for declared in ["text/plain", "text/plain; charset=utf-8"] {
        assert_eq!(read(&bytes, declared), text);
    }
}

#[test]
fn a_wrong_byte_does_not_hide_escapes() {
    let mut bytes = encoded(ISO_2022_JP, JAPANESE);
    bytes.push(0xff);
    assert_eq!(read(&bytes, "text/plain"), format!("{JAPANESE}\u{fffd}"));
}
