//! Prediction files as streams of [`Upload`] pieces, and back.

use vec_types::ViewId;

use crate::ProtocolError;
use crate::pb::scorer::v1::Upload;

/// Longest piece of a file in bytes (scorer.proto).
pub const UPLOAD_PIECE_BYTES: usize = 1 << 20;

/// One piece of an upload, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadItem {
    /// Set on the first piece of a file.
    pub view: Option<ViewId>,
    /// The bytes.
    pub data: Vec<u8>,
}

impl TryFrom<Upload> for UploadItem {
    type Error = ProtocolError;

    fn try_from(upload: Upload) -> Result<Self, ProtocolError> {
        let Upload { view, data } = upload;
        if data.len() > UPLOAD_PIECE_BYTES {
            return Err(ProtocolError::invalid(
                "upload.data",
                format!(
                    "{} bytes in one piece; at most {UPLOAD_PIECE_BYTES}",
                    data.len()
                ),
            ));
        }
        let view = match view.as_str() {
            "" => None,
            text => Some(
                text.parse()
                    .map_err(|error| ProtocolError::invalid("upload.view", error))?,
            ),
        };
        Ok(Self { view, data })
    }
}

/// `bytes` as pieces; an empty file is one empty piece.
pub fn pieces(view: &ViewId, bytes: &[u8]) -> Vec<Upload> {
    let mut all: Vec<Upload> = bytes
        .chunks(UPLOAD_PIECE_BYTES)
        .map(|chunk| Upload {
            view: String::new(),
            data: chunk.to_vec(),
        })
        .collect();
    if all.is_empty() {
        all.push(Upload::default());
    }
    if let Some(first) = all.first_mut() {
        first.view = view.to_string();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_bounded_and_only_the_first_names_the_view() {
        let view: ViewId = "main".parse().expect("view");
        let bytes = vec![7; UPLOAD_PIECE_BYTES + 1];
        let items: Vec<UploadItem> = pieces(&view, &bytes)
            .into_iter()
            .map(|piece| piece.try_into().expect("valid"))
            .collect();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].view, Some(view.clone()));
        assert_eq!(items[1].view, None);
        assert_eq!(
            items.iter().map(|item| item.data.len()).sum::<usize>(),
            bytes.len()
        );
        assert_eq!(pieces(&view, b"").len(), 1);
    }

    #[test]
    fn a_piece_above_the_limit_or_with_a_bad_view_is_refused() {
        let at_limit = Upload {
            view: String::new(),
            data: vec![0; UPLOAD_PIECE_BYTES],
        };
        assert!(UploadItem::try_from(at_limit.clone()).is_ok());
        let mut above = at_limit;
        above.data.push(0);
        assert!(UploadItem::try_from(above).is_err());
        let escaping = Upload {
            view: "../truth".to_owned(),
            data: Vec::new(),
        };
        assert!(UploadItem::try_from(escaping).is_err());
    }
}
