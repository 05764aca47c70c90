// SPDX-License-Identifier: BSD-3-Clause
use millrace_sys as sys;
use std::ffi::{CStr, c_char, c_int};
use std::{fmt, io};

/// Why a call failed: an errno value, and one line with the cause and the
/// remedy, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    errno: i32,
    reason: Option<Box<str>>, // none: the errno is enough
}

impl Error {
    /// The errno value, positive.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.errno
    }

    pub(crate) const fn from_errno(errno: i32) -> Self {
        Self {
            errno,
            reason: None,
        }
    }

    pub(crate) fn invalid(reason: &str) -> Self {
        Self {
            errno: 22, // EINVAL
            reason: Some(reason.into()),
        }
    }

    pub(crate) fn busy(reason: &str) -> Self {
        Self {
            errno: 16, // EBUSY
            reason: Some(reason.into()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: returns a constant string for any number.
        let name = || unsafe { CStr::from_ptr(sys::mr_strerror(-self.errno)) }.to_string_lossy();
        match &self.reason {
            Some(reason) => f.write_str(reason),
            None => f.write_str(&name()),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = io::Error::from_raw_os_error(error.errno).kind();
        io::Error::new(kind, error)
    }
}

/// Call the library. Returns its result, or why it failed.
pub(crate) fn call(f: impl FnOnce(*mut sys::mr_reason) -> c_int) -> Result<(), Error> {
    let mut why = sys::mr_reason { text: [0; 384] };
    let ret = f(&raw mut why);
    if ret >= 0 {
        return Ok(());
    }
    let reason = text(&why.text);
    Err(Error {
        errno: -ret,
        reason: (!reason.is_empty()).then(|| reason.into()),
    })
}

/// The same, for calls that give no reason.
pub(crate) fn check(ret: c_int) -> Result<(), Error> {
    if ret < 0 {
        return Err(Error::from_errno(-ret));
    }
    Ok(())
}

/// A string in an array of the library's.
pub(crate) fn text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array
        .iter()
        .map(|c| c.to_ne_bytes()[0])
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
