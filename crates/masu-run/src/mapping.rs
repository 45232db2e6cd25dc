//! The lines of proc(5)'s `maps`, which `smaps` has among others.

pub struct Mapping<'a> {
    pub start: u64,
    /// The address behind the mapping's last byte.
    pub end: u64,
    /// `r-xp` and the like.
    pub access: &'a str,
    /// The mapping's offset in the file.
    pub offset: u64,
    /// Empty where no file is mapped, or `[heap]` and its like.
    pub path: &'a str,
}

impl<'a> Mapping<'a> {
    /// Reads a line; none where it is no mapping's first.
    pub fn read(line: &'a str) -> Option<Mapping<'a>> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (access, offset) = (fields.next()?, fields.next()?);
        let path = fields.nth(2).unwrap_or("").trim();
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Mapping { start: hex(start)?, end: hex(end)?, access, offset: hex(offset)?, path })
    }

    pub fn all(maps: &'a str) -> impl Iterator<Item = Mapping<'a>> {
        maps.lines().filter_map(Mapping::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_its_file_with_its_spaces_and_other_lines_are_none() {
        let text = "7f10-7f30 r-xp 00002000 fe:00 123    /lib/a b.so\nRss:  12 kB\n10-20 rw-p 0 00:00 0 \n";
        let read: Vec<Mapping> = Mapping::all(text).collect();
        assert_eq!(read.len(), 2);
        let Mapping { start, end, access, offset, path } = read[0];
        assert_eq!(
            (start, end, access, offset, path),
            (0x7f10, 0x7f30, "r-xp", 0x2000, "/lib/a b.so")
        );
        assert_eq!(read[1].path, "");
    }
}
