//! Certificates for tests of TLS.

use std::path::Path;
use std::process::Command;

use crate::helpers::support::*;

/// Makes a certificate of an authority, which is made if it does not exist, as `<name>.pem` and `<name>.key`; returns the options that name
/// the files.
pub fn certificate(openssl: &Path, dir: &Dir, authority: &str, name: &str) -> String {
    let run = |line: String| {
        let ran = Command::new(openssl)
            .args(line.split_whitespace())
            .output()
            .unwrap();
        Ran::of(ran).ok();
    };
    let (ca, at) = (dir.at(authority), dir.at(name));
    if !dir.join(&format!("{authority}.pem")).exists() {
        run(format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={authority} \
             -keyout {ca}.key -out {ca}.pem"
        ));
    }
    run(format!(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} -keyout {at}.key -out {at}.csr"
    ));
    std::fs::write(
        dir.join("names"),
        "subjectAltName=IP:127.0.0.1,DNS:localhost\n",
    )
    .unwrap();
    run(format!(
        "x509 -req -in {at}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days 2 -extfile {} -out {at}.pem",
        dir.at("names")
    ));
    format!("--tls-ca {ca}.pem --tls-cert {at}.pem --tls-key {at}.key")
}
