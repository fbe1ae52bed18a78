//! Reading a request: JSON, or a form of several parts with `payload_json` and files.
//!
//! Invariant: a body in another content type is a form error, as with Discord.

use crate::sandbox::discord::error::{Refusal, form};
use axum::http::{HeaderMap, header};
use serde_json::Value;

/// A file sent along.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) filename: String,
    pub(crate) bytes: Vec<u8>,
}

/// A body as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) json: Value,
    pub(crate) files: Vec<File>,
}

const FILE: usize = 10 * 1024 * 1024;
const REQUEST: usize = 25 * 1024 * 1024;

pub(crate) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Body, Refusal> {
    if bytes.is_empty() {
        return Ok(Body::default());
    }
    if bytes.len() > REQUEST {
        return Err(Refusal::new(40005));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" {
        let json = serde_json::from_slice(bytes).map_err(|_| Refusal::new(50109))?;
        return Ok(Body { json, files: Vec::new() });
    }
    let boundary = kind.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
    match boundary.filter(|_| essence == "multipart/form-data") {
        Some(boundary) => parts(bytes, boundary.trim_matches('"')),
        None => Err(form(
            "",
            "CONTENT_TYPE_INVALID",
            "Expected \"Content-Type\" header to be one of {'application/json', 'multipart/form-data'}.",
        )),
    }
}

fn parts(bytes: &[u8], boundary: &str) -> Result<Body, Refusal> {
    let mut body = Body::default();
    let mark = format!("--{boundary}").into_bytes();
    for part in split(bytes, &mark).into_iter().skip(1) {
        let part = part.strip_prefix(b"\r\n").unwrap_or(part);
        let Some(end) = position(part, b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&part[..end]).into_owned();
        let content = &part[end + 4..];
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let field = |name: &str| {
            let (_, rest) = head.split_once(&format!("{name}=\""))?;
            rest.split('"').next().map(str::to_owned)
        };
        // `filename` holds `name` too: the first hit is the part's own.
        let Some(name) = field(" name").or_else(|| field(";name")) else { continue };
        match field("filename") {
            // Parts of other names are not files of the message.
            Some(filename) if name.starts_with("files[") => {
                if content.len() > FILE {
                    return Err(Refusal::new(40005));
                }
                body.files.push(File { filename, bytes: content.to_vec() });
            }
            None if name == "payload_json" => {
                body.json = serde_json::from_slice(content).map_err(|_| Refusal::new(50109))?;
            }
            _ => {}
        }
    }
    if body.files.len() > 10 {
        return Err(form("files", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length."));
    }
    Ok(body)
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn split<'b>(bytes: &'b [u8], mark: &[u8]) -> Vec<&'b [u8]> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = position(rest, mark) {
        out.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    out.push(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_parts_are_read_and_nothing_else_is() {
        let headers = |kind: &str| HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
        assert_eq!(read(&headers("application/json"), b"{\"a\":1}").unwrap().json["a"], 1);
        assert_eq!(read(&headers("application/json"), b"{").unwrap_err().code, 50109);
        assert_eq!(read(&headers("text/plain"), b"{}").unwrap_err().code, 50035);
        let text = "--x\r\nContent-Disposition: form-data; name=\"payload_json\"\r\nContent-Type: application/json\r\n\r\n\
            {\"content\":\"c\"}\r\n--x\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"command.txt\"\r\n\r\n\
            rm -rf\r\n\r\n--x--\r\n";
        let body = read(&headers("multipart/form-data; boundary=x"), text.as_bytes()).unwrap();
        assert_eq!(body.json["content"], "c");
        let file = &body.files[0];
        assert_eq!(file.filename, "command.txt");
        assert_eq!(file.bytes, b"rm -rf\r\n");
    }
}
