#pragma once

#include <memory>
#include <string>

#include "chiliad/encode/frozen_encoder.h"

namespace chiliad::encode {

/// An encoder written in Python, in a process of its own. The class is made without arguments; its
/// `encode(items)` gets a list of texts, or pictures as a memoryview of uint8 [B, H, W, 3], and returns one
/// float32 buffer an item (numpy arrays are; so is memoryview): [T, D] of a text, or a pair with the pooled
/// [P]; [C, h, w] of a picture, or [2, C, h, w], mean and logvar. The interpreter is CHILIAD_PYTHON or the
/// python3 of the path. Throws InvalidInput with what Python says, Unavailable after the deadline.
[[nodiscard]] std::unique_ptr<CaptionEncoder> open_python_captions(const std::string& encoder);
[[nodiscard]] std::unique_ptr<PictureEncoder> open_python_pictures(const std::string& encoder);

}  // namespace chiliad::encode
