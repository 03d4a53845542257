//! What each format takes and refuses.

use super::*;

#[test]
fn each_format_takes_and_refuses_what_upstream_does() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("byte", &["aGk=", "YWJj"], &["", "a", "aGk", "a-b="]),
        (
            "bsonobjectid",
            &["507f1f77bcf86cd799439011"],
            &["507f", "zzzf1f77bcf86cd799439011"],
        ),
        (
            "cidr",
            &["10.0.0.0/8", "010.0.0.0/8", "fe80::/10"],
            &["10.0.0.0", "10.0.0.0/33", "::/129"],
        ),
        (
            "creditcard",
            &["4111-1111-1111-1111"],
            &["4111-1111-1111-1112", "1"],
        ),
        (
            "date",
            &["2024-02-29"],
            &["2023-02-29", "2024-1-1", "20240101", ""],
        ),
        (
            "date-time",
            &["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.123+02:00"],
            &[
                "2024-01-02",
                "2024-01-02T24:00:00Z",
                "2024-01-02T03:04:05",
                "x",
            ],
        ),
        ("datetime", &["2024-01-02T03:04:05Z"], &["2024"]),
        (
            "duration",
            &["1h30m", "-1.5s", "0", "3 days", "2 hours", "1w"],
            &["", "1", "h", "abc"],
        ),
        (
            "email",
            &[
                "a@b",
                "a.b+c@example.com",
                "Jo <jo@example.com>",
                "\"a b\"@x.org",
            ],
            &["a", "@b", "a@", "a..b@c", "a@b@c d"],
        ),
        ("hexcolor", &["#fff", "00FF00"], &["#ff", "ggg"]),
        (
            "hostname",
            &["localhost", "example.com", "a-b.example.com"],
            &["-a.com", "a_b.com", ""],
        ),
        (
            "ipv4",
            &["10.0.0.1", "010.0.0.1"],
            &["10.0.0", "256.0.0.1", "::1", "a"],
        ),
        ("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "g::"]),
        (
            "isbn",
            &["0321751043", "978-0321751041"],
            &["0321751044", "1"],
        ),
        ("isbn10", &["0-8044-2957-X"], &["978-0321751041"]),
        ("isbn13", &["978-0321751041"], &["0321751043"]),
        ("k8s-long-name", &["a.b-c.d1"], &["A", "a..b", "-a"]),
        ("k8s-short-name", &["a-1"], &["a.b", "a-", ""]),
        (
            "mac",
            &["01:23:45:67:89:ab", "0123.4567.89ab"],
            &["01:23", "01:23:45:67:89:zz"],
        ),
        ("password", &["", "x"], &[]),
        ("rgbcolor", &["rgb(0, 255, 12)"], &["rgb(0,256,0)", "0,0,0"]),
        ("ssn", &["123-45-6789"], &["123456789", "x"]),
        (
            "uri",
            &[
                "https://example.com/a?b",
                "/a/b",
                "urn:x:y",
                "http://[::1]:80/",
            ],
            &[
                "",
                "a/b",
                "http://a b/",
                "http://h:port/",
                "http://h/%zz",
                "1a:b",
            ],
        ),
        (
            "uuid",
            &[
                "7d444840-9dc0-11d1-b245-5ffdce74fad2",
                "7D4448409DC011D1B2455FFDCE74FAD2",
            ],
            &["7d", "x"],
        ),
        (
            "uuid4",
            &["7d444840-9dc0-41d1-b245-5ffdce74fad2"],
            &["7d444840-9dc0-11d1-b245-5ffdce74fad2"],
        ),
    ];
    for (name, good, bad) in cases {
        let format = Format::parse(name, Some(NodeType::String)).expect(name);
        for value in *good {
            assert!(format.matches(value), "{name} should take {value:?}");
        }
        for value in *bad {
            assert!(!format.matches(value), "{name} should refuse {value:?}");
        }
    }
}

#[test]
fn formats_are_known_by_type() {
    assert!(Format::parse("int32", Some(NodeType::Integer)).is_some());
    assert!(Format::parse("int32", Some(NodeType::String)).is_none());
    assert!(Format::parse("date-time", Some(NodeType::Object)).is_none());
    assert!(Format::parse("quantity", Some(NodeType::String)).is_none());
    assert!(Format::parse("date-time", None).is_some());
}

#[test]
fn multibyte_text_is_no_uuid_and_no_panic() {
    let format = Format::parse("uuid", None).expect("uuid");
    assert!(!format.matches("7d44484é-9dc0-11d1-b245-5ffdce74fad2"));
}
