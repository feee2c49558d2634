#pragma once

#include <filesystem>
#include <memory>

#include "chiliad/encode/frozen_encoder.h"

namespace chiliad::encode {

/// Whether the folder is a pipeline of diffusers: tokenizer, text_encoder and their numbered like.
[[nodiscard]] bool is_pipeline(const std::filesystem::path& folder);

/// The text encoders of a pipeline together, as the family takes them.
/// sd3: rows of both CLIP models before their last block side by side, zeros behind them up to T5's width,
/// then T5's rows (zeros where there is no text_encoder_3); pooled: both projections. flux: T5's rows
/// (text_encoder_2), pooled: CLIP's. model.text_max_tokens is T5's length; CLIP has its 77. Throws
/// InvalidInput for other families and missing parts. Source: the pipelines of diffusers.
[[nodiscard]] std::unique_ptr<CaptionEncoder> open_pipeline_captions(const spec::RunFile& run);

}  // namespace chiliad::encode
