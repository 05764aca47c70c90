// SPDX-License-Identifier: BSD-3-Clause
//! The declarations of src/lib.rs, rewritten as C, agree with the headers: the
//! C compiler compares prototypes, types and offsets of members, and constants.
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// `*mut *mut mr_pool` is `struct mr_pool **`.
fn c_type(rust: &str) -> String {
    if let Some(to) = rust.strip_prefix("*mut ") {
        return c_type(to) + " *";
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return c_type(to) + " const *";
    }
    match rust {
        "c_int" => "int".into(),
        "c_char" => "char".into(),
        "c_void" => "void".into(),
        "bool" => "_Bool".into(),
        "usize" => "size_t".into(),
        "Option<mr_log_fn>" => "mr_log_fn *".into(),
        "Option<mr_worker_fn>" => "mr_worker_fn *".into(),
        "Option<mr_dataplane_drop_fn>" => "mr_dataplane_drop_fn *".into(),
        name if name.starts_with("mr_") => format!("struct {name}"),
        number => {
            let kind = if number.starts_with('i') {
                "int"
            } else {
                "uint"
            };
            format!("{kind}{}_t", &number[1..])
        }
    }
}

/// `pub fn mr_x(a: u32) -> u32` redeclares what the header has.
fn prototype(line: &str) -> String {
    let (name, rest) = line.split_once('(').expect("a function");
    let (arguments, returns) = rest.split_once(')').expect("its arguments");
    let returns = returns.trim_start_matches(" -> ").trim_end_matches(';');
    let arguments: Vec<_> = arguments
        .split(", ")
        .filter_map(|a| Some(c_type(a.split_once(": ")?.1)))
        .collect();
    format!(
        "{} {name}({});\n",
        if returns.is_empty() {
            "void".into()
        } else {
            c_type(returns)
        },
        if arguments.is_empty() {
            "void".into()
        } else {
            arguments.join(", ")
        }
    )
}

/// A member of a twin of `name`, and what is asserted of both.
fn member(name: &str, line: &str) -> (String, String) {
    let (field, rust) = line
        .trim_end_matches(',')
        .trim_start_matches("r#")
        .split_once(": ")
        .expect("a member");
    let (element, n) = rust
        .strip_prefix('[')
        .and_then(|array| array.trim_end_matches(']').split_once("; "))
        .unwrap_or((rust, ""));
    let array = if n.is_empty() {
        String::new()
    } else {
        format!("[{n}]")
    };
    let ours = format!("\t{} {field}{array};\n", c_type(element));
    let mut same = format!(
        "_Static_assert(offsetof(struct rust_{name}, {field}) == offsetof(struct {name}, {field}) \
         && sizeof(((struct rust_{name} *)0)->{field}) == sizeof(((struct {name} *)0)->{field}), \
         \"{name}.{field}\");\n"
    );
    // Hooks that this binding leaves unset are pointers to it.
    if element != "*mut c_void" {
        writeln!(
            same,
            "_Static_assert(__builtin_types_compatible_p(__typeof__(((struct rust_{name} *)0)->{field}), \
             __typeof__(((struct {name} *)0)->{field})), \"type of {name}.{field}\");"
        )
        .unwrap();
    }
    (ours, same)
}

fn translate(source: &str) -> (String, usize) {
    let mut out = String::from(
        "#include <millrace/driver.h>\n#include <millrace/millrace.h>\n#include <millrace/experimental/offload.h>\n\
         #include <millrace/experimental/port_queues.h>\n#include <millrace/flow.h>\n\
         #include <millrace/lpm.h>\n",
    );
    let mut n_items = 0;
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(function) = line.strip_prefix("pub fn ") {
            out += &prototype(function);
        } else if let Some(constant) = line.strip_prefix("pub const ") {
            let (name, rest) = constant.split_once(": ").expect("a constant");
            let value = rest
                .split_once(" = ")
                .expect("its value")
                .1
                .trim_end_matches(';')
                .replace('_', "");
            writeln!(out, "_Static_assert({name} == ({value}), \"{name}\");").unwrap();
        } else if let Some(name) = line.strip_prefix("pub struct mr_") {
            let name = format!("mr_{}", name.trim_end_matches(" {"));
            let fields = lines.by_ref().take_while(|l| *l != "}");
            let (ours, same): (String, String) = fields
                .filter_map(|l| Some(member(&name, l.strip_prefix("pub ")?)))
                .unzip();
            write!(out, "struct rust_{name} {{\n{ours}}};\n{same}").unwrap();
            writeln!(
                out,
                "_Static_assert(sizeof(struct rust_{name}) == sizeof(struct {name}), \"{name}\");"
            )
            .unwrap();
        } else {
            continue;
        }
        n_items += 1;
    }
    (out, n_items)
}

/// What the compiler says, and whether it is content.
fn compile(c: &str) -> (bool, String) {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "libmillrace-ffi"])
        .output()
        .expect("pkg-config");
    let mut cc = Command::new("cc")
        .args([
            "-std=gnu11",
            "-Wall",
            "-Werror",
            "-Wno-array-parameter", // uint8_t mac[6] is a pointer
            "-fsyntax-only",
            "-x",
            "c",
            "-",
        ])
        .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cc");
    cc.stdin
        .take()
        .expect("a pipe")
        .write_all(c.as_bytes())
        .expect("cc reads");
    let done = cc.wait_with_output().expect("cc ends");
    (
        done.status.success(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

#[test]
fn declarations_are_those_of_the_headers() {
    let (c, n_items) = translate(include_str!("../src/lib.rs"));
    assert!(n_items > 50, "only {n_items} declarations found");
    let (ok, said) = compile(&c);
    assert!(ok, "{said}");
}

#[test]
fn differences_are_found() {
    for (right, wrong) in [
        ("n_bytes: u32) -> u64", "n_bytes: u64) -> u64"),
        ("pub n_depot: u64", "pub n_depot: i64"),
        ("pub n_txqs: u32,", ""),
        ("MR_MAX_SEGS: u32 = 18", "MR_MAX_SEGS: u32 = 17"),
    ] {
        let source = include_str!("../src/lib.rs");
        assert!(source.contains(right), "{right}");
        let (c, _) = translate(&source.replacen(right, wrong, 1));
        assert!(!compile(&c).0, "{wrong:?} for {right:?} was not found");
    }
}
