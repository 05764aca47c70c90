// SPDX-License-Identifier: BSD-3-Clause
//! Find the library with pkg-config.
use std::env;
use std::process::Command;

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // only reads the declarations
    }
    let pkg_config = env::var_os("PKG_CONFIG").unwrap_or("pkg-config".into());
    let found = Command::new(&pkg_config)
        .args(["--libs", "libmillrace-ffi >= 0.1.0", "libmillrace-flow"])
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}: install it", pkg_config.to_string_lossy()));
    assert!(
        found.status.success(),
        "{}install libmillrace-dev, or set PKG_CONFIG_PATH",
        String::from_utf8_lossy(&found.stderr)
    );
    for word in String::from_utf8_lossy(&found.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
    }
}
