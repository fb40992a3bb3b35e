use crate::words::{each_word, of_query, weight};

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

#[test]
fn words_are_folded() {
    let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
    check("Café, CAFE\u{301}!", &["cafe", "cafe"]);
    check("a_b example.com x-1 don't", &["a", "b", "example", "com", "x", "1", "don", "t"]);
    check("Straße STRASSE ẞ", &["strasse", "strasse", "ss"]);
    check("ΟΔΟΣ οδός", &["οδοσ", "οδοσ"]);
    check("Łódź İstanbul", &["lodz", "istanbul"]);
    check("ﬁn ①", &["fin", "1"]);
    check("हिन्दी", &["हिन्दी"]);
    check("", &[]);
    check("— …!", &[]);
}

#[test]
fn scripts_without_spaces_are_split_into_pairs() {
    assert_eq!(words("東京都に"), ["東京", "京都", "都に"]);
    assert_eq!(words("東 x東京y"), ["東", "x", "東京", "y"]);
    assert!(weight("東京", "東") > 0.0);
    assert_eq!(weight("東京", "京都"), 0.0);
}

#[test]
fn other_forms_of_a_word_weigh_less() {
    let check = |word: &str, asked: &str, expected: f32| {
        assert_eq!(weight(word, asked), expected, "{word} {asked}");
    };
    check("deploy", "deploy", 1.0);
    for (word, asked) in [
        ("deployment", "deploy"),
        ("deploy", "deploys"),
        ("deployed", "deploying"),
        ("migrations", "migration"),
        ("kündigung", "kündigungen"),
    ] {
        check(word, asked, 0.4);
    }
    for (word, asked) in
        [("state", "status"), ("a", "ab"), ("ab", "a"), ("cat", "category"), ("post", "past")]
    {
        check(word, asked, 0.0);
    }
}

#[test]
fn queries_are_bounded() {
    assert_eq!(of_query("Deploy deploy, fly").unwrap(), ["deploy", "fly"]);
    assert_eq!(of_query("— !").unwrap_err(), "`query` has no words");
    let many: String = (0..33).map(|it| format!("w{it} ")).collect();
    let error = "`query` has more than 32 words, the limit";
    assert_eq!(of_query(&many).unwrap_err(), error);
    assert_eq!(of_query(&"same ".repeat(1000)).unwrap().len(), 1);
}
