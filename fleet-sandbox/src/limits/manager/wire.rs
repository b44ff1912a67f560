//! The messages of D-Bus, as far as they are needed here: little-endian, basic types.

use super::bytes::{Reader, Writer, length};

/// A value of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::limits) enum Value {
    Bool(bool),
    Number(u64),
    Text(String),
    Pids(Vec<u32>),
}

impl Value {
    fn signature(&self) -> &'static str {
        match self {
            Self::Bool(_) => "b",
            Self::Number(_) => "t",
            Self::Text(_) => "s",
            Self::Pids(_) => "au",
        }
    }

    /// As a variant.
    fn write(&self, bytes: &mut Writer) {
        bytes.signature(self.signature());
        match self {
            Self::Bool(yes) => bytes.number(u32::from(*yes)),
            Self::Number(number) => {
                bytes.align(8);
                bytes.bytes.extend(number.to_le_bytes());
            }
            Self::Text(text) => bytes.text(text),
            Self::Pids(pids) => bytes.array(4, |bytes| {
                for pid in pids {
                    bytes.number(*pid);
                }
            }),
        }
    }
}

/// The arguments of a call, with their signature.
#[derive(Debug, Default)]
pub(super) struct Body {
    signature: String,
    bytes: Writer,
}

impl Body {
    pub(super) fn text(mut self, text: &str) -> Self {
        self.signature.push('s');
        self.bytes.text(text);
        self
    }

    pub(super) fn number(mut self, number: u32) -> Self {
        // What systemd takes for the number of a signal is signed; none is negative.
        self.signature.push('i');
        self.bytes.number(number);
        self
    }

    /// `a(sv)`.
    pub(super) fn properties(mut self, properties: &[(&str, Value)]) -> Self {
        self.signature.push_str("a(sv)");
        self.bytes.array(8, |bytes| {
            for (name, value) in properties {
                bytes.align(8);
                bytes.text(name);
                value.write(bytes);
            }
        });
        self
    }

    /// `a(sa(sv))` with nothing in it.
    pub(super) fn no_units(mut self) -> Self {
        self.signature.push_str("a(sa(sv))");
        self.bytes.array(8, |_| {});
        self
    }
}

/// Types of a message, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Return,
    Error,
    Signal,
    Other,
}

/// A message that came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// The call that it answers.
    pub(super) answers: Option<u32>,
    pub(super) member: String,
    pub(super) error: String,
    signature: String,
    body: Vec<u8>,
}

/// A call of the manager, of an object of its own.
pub(super) fn call(serial: u32, member: &str, body: &Body) -> Vec<u8> {
    let mut fields = Writer::default();
    for (code, signature, text) in [
        (1, "o", "/org/freedesktop/systemd1"),
        (2, "s", "org.freedesktop.systemd1.Manager"),
        (3, "s", member),
        (6, "s", "org.freedesktop.systemd1"),
    ] {
        fields.align(8);
        fields.bytes.push(code);
        fields.signature(signature);
        fields.text(text);
    }
    if !body.signature.is_empty() {
        fields.align(8);
        fields.bytes.push(8);
        fields.signature("g");
        fields.signature(&body.signature);
    }
    let mut message = Writer { bytes: vec![b'l', 1, 0, 1] };
    message.number(length(&body.bytes.bytes));
    message.number(serial);
    message.number(length(&fields.bytes));
    // The fields begin at a multiple of eight, so their own alignment stays right.
    message.bytes.extend(fields.bytes);
    message.align(8);
    message.bytes.extend(&body.bytes.bytes);
    message.bytes
}

/// Bytes of the first part of a message, which tells the length of the rest.
pub(super) const START: usize = 16;

/// How long the rest of a message is; `None` for what is none, or longer than `largest`.
pub(super) fn rest(start: &[u8; START], largest: usize) -> Option<usize> {
    let mut reader = Reader { bytes: start, at: 4 };
    if start[0] != b'l' || start[3] != 1 {
        return None;
    }
    let (body, _serial, fields) = (reader.number()?, reader.number()?, reader.number()?);
    let fields = usize::try_from(fields).ok()?.checked_next_multiple_of(8)?;
    let all = fields.checked_add(usize::try_from(body).ok()?)?;
    (all <= largest).then_some(all)
}

/// A message of these two parts; `None` for what is none.
pub(super) fn parse(start: &[u8; START], rest: &[u8]) -> Option<Message> {
    let kind = match start[1] {
        2 => Kind::Return,
        3 => Kind::Error,
        4 => Kind::Signal,
        _ => Kind::Other,
    };
    let end = Reader { bytes: start, at: 12 }.number()?;
    let end = usize::try_from(end).ok()?;
    let body = rest.get(end.checked_next_multiple_of(8)?..)?.to_vec();
    let mut message = Message {
        kind,
        answers: None,
        member: String::new(),
        error: String::new(),
        signature: String::new(),
        body,
    };
    let mut reader = Reader { bytes: rest.get(..end)?, at: 0 };
    while reader.at < end {
        reader.align(8);
        let code = reader.byte()?;
        let signature = reader.signature()?;
        match (code, signature) {
            (5, "u") => message.answers = Some(reader.number()?),
            (3, "s") => reader.text()?.clone_into(&mut message.member),
            (4, "s") => reader.text()?.clone_into(&mut message.error),
            (8, "g") => reader.signature()?.clone_into(&mut message.signature),
            (_, "s" | "o") => {
                reader.text()?;
            }
            (_, "g") => {
                reader.signature()?;
            }
            (_, "u") => {
                reader.number()?;
            }
            _ => return None,
        }
    }
    Some(message)
}

impl Message {
    /// The texts and paths at the beginning of the body, up to the first value of another type;
    /// numbers among them are passed over.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut reader = Reader { bytes: &self.body, at: 0 };
        let mut found = Vec::new();
        for kind in self.signature.chars() {
            match kind {
                's' | 'o' => match reader.text() {
                    Some(text) => found.push(text),
                    None => break,
                },
                'u' if reader.number().is_some() => {}
                _ => break,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(bytes: &[u8]) -> ([u8; START], &[u8]) {
        let (start, rest) = bytes.split_at(START);
        (start.try_into().unwrap(), rest)
    }

    #[test]
    fn a_call_is_what_the_bus_expects() {
        let bytes = call(7, "StopUnit", &Body::default().text("a.scope").text("replace"));
        let (start, body) = split(&bytes);
        assert_eq!(start[..4], [b'l', 1, 0, 1]);
        assert_eq!(start[8..12], [7, 0, 0, 0]);
        assert_eq!(rest(&start, 4096), Some(body.len()));
        let message = parse(&start, body).unwrap();
        assert_eq!((message.kind, message.member.as_str()), (Kind::Other, "StopUnit"));
        assert_eq!(message.signature, "ss");
        assert_eq!(message.texts(), ["a.scope", "replace"]);
    }

    #[test]
    fn properties_are_aligned_as_the_bus_expects() {
        let body = Body::default()
            .properties(&[("A", Value::Number(1)), ("P", Value::Pids(vec![9, 8]))])
            .no_units();
        assert_eq!(body.signature, "a(sv)a(sa(sv))");
        let expected: &[&[u8]] = &[
            &[48, 0, 0, 0, 0, 0, 0, 0],
            // "A", variant t, padding, the number
            &[1, 0, 0, 0, b'A', 0, 1, b't', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            // "P", variant au, padding, the length, the elements
            &[1, 0, 0, 0, b'P', 0, 2, b'a', b'u', 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0],
            // Nothing, but aligned for what could be in it.
            &[0, 0, 0, 0],
        ];
        let mut expected = expected.concat();
        expected.resize(expected.len().next_multiple_of(8), 0);
        assert_eq!(body.bytes.bytes, expected);
    }

    #[test]
    fn no_answer_is_believed_to_be_longer_than_it_is() {
        let bytes = call(1, "X", &Body::default().text("abc"));
        let (start, whole) = split(&bytes);
        for length in 0..whole.len() {
            // Cut off anywhere it is either no message, or one with less in it.
            if let Some(message) = parse(&start, &whole[..length]) {
                assert!(message.texts().is_empty(), "{length}");
            }
        }
        assert_eq!(rest(&start, whole.len() - 1), None, "too large");
        for at in 0..bytes.len() {
            for value in [0, 1, 127, 255] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let (start, whole) = split(&wrong);
                // Whatever it is taken for, nothing is read that is not there.
                let _ = rest(&start, 1 << 20);
                let _ = parse(&start, whole).map(|message| message.texts().len());
            }
        }
        let mut huge = start;
        huge[4..8].copy_from_slice(&[255; 4]);
        huge[12..16].copy_from_slice(&[255; 4]);
        assert_eq!(rest(&huge, usize::MAX - 1).is_some(), usize::BITS > 32);
        assert_eq!(parse(&huge, whole), None);
    }
}
