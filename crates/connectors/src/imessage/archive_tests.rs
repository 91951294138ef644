//! An archive for the tests of the typed stream.

/// An archive with this text, as Messages writes it.
pub(crate) fn archive_of(text: &str) -> Vec<u8> {
    let mut archive = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00\x84\x84\x08NSObject\x00\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+".to_vec();
    match text.len() {
        small @ 0..0x80 => archive.push(small as u8),
        medium @ 0x80..0x1_0000 => {
            archive.push(0x81);
            archive.extend((medium as u16).to_le_bytes());
        }
        large => {
            archive.push(0x82);
            archive.extend((large as u32).to_le_bytes());
        }
    }
    archive.extend(text.as_bytes());
    archive.extend(b"\x86\x84\x02iI\x01\x05\x92\x84\x84\x84\x0cNSDictionary\x00\x94\x84\x01i\x01\x92\x84\x96\x96\x1d__kIMMessagePartAttributeName\x86\x92\x84\x84\x84\x08NSNumber\x00\x84\x84\x07NSValue\x00\x94\x84\x01*\x84\x99\x99\x00\x86\x86\x86");
    archive
}
