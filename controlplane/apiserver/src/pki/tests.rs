use super::*;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn facts_of(pair: &KeyCertificate) -> CertificateFacts {
    certificate_facts(&pair.der().unwrap()).unwrap()
}

#[test]
fn the_second_start_reuses_what_the_first_made() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("pki");
    let first = Pki::open(&dir, &[], now()).unwrap();
    let second = Pki::open(&dir, &[], now()).unwrap();
    assert_eq!(first.ca_pem(), second.ca_pem());
    assert_eq!(first.token(), second.token());
    assert_eq!(first.server.certificate_pem, second.server.certificate_pem);
    assert_eq!(first.admin.key_pem, second.admin.key_pem);
    assert_eq!(first.token().len(), 64);
}

#[test]
fn credentials_are_readable_by_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("pki");
    Pki::open(&dir, &[], now()).unwrap();
    assert_eq!(mode(&dir), 0o700);
    for file in ["ca.pem", "ca.crt", "server.pem", "admin.pem", "token"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
}

#[test]
fn leaves_are_renewed_before_they_expire_and_the_authority_stays() {
    let dir = tempfile::tempdir().unwrap();
    let first = Pki::open(dir.path(), &[], now()).unwrap();
    let later = now() + LEAF_LIFETIME - DAY;
    let second = Pki::open(dir.path(), &[], later).unwrap();
    assert_eq!(first.ca_pem(), second.ca_pem());
    assert_ne!(first.server.certificate_pem, second.server.certificate_pem);
    assert_eq!(facts_of(&second.admin).not_after, later + LEAF_LIFETIME);
}

#[test]
fn an_old_authority_is_replaced_with_all_its_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let first = Pki::open(dir.path(), &[], now()).unwrap();
    let later = now() + CA_LIFETIME - DAY;
    let second = Pki::open(dir.path(), &[], later).unwrap();
    assert_ne!(first.ca_pem(), second.ca_pem());
    assert_ne!(first.admin.certificate_pem, second.admin.certificate_pem);
    assert_eq!(first.token(), second.token());
}

#[test]
fn a_new_name_gives_a_new_server_certificate_that_covers_it() {
    let dir = tempfile::tempdir().unwrap();
    Pki::open(dir.path(), &[], now()).unwrap();
    let names = ["cp.example.test".to_owned(), "10.1.2.3".to_owned()];
    let facts = facts_of(&Pki::open(dir.path(), &names, now()).unwrap().server);
    assert_eq!(facts.dns_names, ["localhost", "cp.example.test"]);
    let ips: Vec<String> = facts.ip_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(ips, ["127.0.0.1", "::1", "10.1.2.3"]);
    assert_eq!(facts.not_after, now() + LEAF_LIFETIME);
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    let error = Pki::ephemeral(&["not a name".to_owned()], now()).unwrap_err();
    assert!(matches!(error, PkiError::InvalidName(_)));
}

#[test]
fn a_damaged_file_is_named_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    Pki::open(dir.path(), &[], now()).unwrap();
    std::fs::write(dir.path().join("ca.pem"), "hello").unwrap();
    let error = Pki::open(dir.path(), &[], now()).unwrap_err();
    assert!(error.to_string().contains("ca.pem"), "{error}");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("ca.pem")).unwrap(),
        "hello"
    );
}

#[test]
fn client_certificates_carry_user_and_group() {
    let pki = Pki::ephemeral(&[], now()).unwrap();
    let facts = facts_of(&pki.issue_client("jane", "team-a", now()).unwrap());
    assert_eq!(facts.common_name.as_deref(), Some("jane"));
    assert_eq!(facts.organizations, ["team-a"]);
}

#[test]
fn debug_output_shows_no_secret() {
    let pki = Pki::ephemeral(&[], now()).unwrap();
    let text = format!("{pki:?} {:?}", pki.admin());
    assert!(!text.contains("KEY") && !text.contains(pki.token()));
}

#[test]
fn truncated_certificates_are_errors_and_never_panics() {
    let pki = Pki::ephemeral(&[], now()).unwrap();
    let der = pki.server.der().unwrap();
    assert!(certificate_facts(&der).is_ok());
    let names = pki.server.certificate_pem.len();
    assert!(names > 0);
    for cut in 0..der.len() {
        let _ = certificate_facts(&der[..cut]);
    }
    for at in 0..der.len() {
        let mut broken = der.to_vec();
        broken[at] ^= 0xff;
        let _ = certificate_facts(&broken);
    }
    assert!(certificate_facts(&der[..20]).is_err());
}

#[test]
fn the_kubeconfig_is_yaml_whose_values_cannot_break_out() {
    let text = kubeconfig("https://127.0.0.1:6443", Some("PEM"), Some("t\"x: y"));
    let value: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(value["users"][0]["user"]["token"], "t\"x: y");
    assert_eq!(
        value["clusters"][0]["cluster"]["server"],
        "https://127.0.0.1:6443"
    );
    assert_eq!(
        value["clusters"][0]["cluster"]["certificate-authority-data"],
        "UEVN"
    );
    assert_eq!(value["current-context"], "ecp");
}
