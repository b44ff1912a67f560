//! The values of D-Bus as bytes: little-endian, aligned.

/// Writes values, each aligned to its size.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

pub(super) fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub(super) fn number(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(length(text.as_bytes()));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// No signature here is as long as 255 bytes.
    pub(super) fn signature(&mut self, text: &str) {
        self.bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// The length counts neither itself nor the padding before the first element.
    pub(super) fn array(&mut self, align: usize, fill: impl FnOnce(&mut Self)) {
        self.number(0);
        let place = self.bytes.len() - 4;
        self.align(align);
        let begin = self.bytes.len();
        fill(self);
        let size = length(&self.bytes[begin..]).to_le_bytes();
        self.bytes[place..place + 4].copy_from_slice(&size);
    }
}

/// Reads values; at the first that is not there, nothing.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.align(4);
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn ended(&mut self, count: usize) -> Option<&'a str> {
        let text = std::str::from_utf8(self.take(count)?).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let count = usize::try_from(self.number()?).ok()?;
        self.ended(count)
    }

    pub(super) fn signature(&mut self) -> Option<&'a str> {
        let count = usize::from(self.byte()?);
        self.ended(count)
    }
}
