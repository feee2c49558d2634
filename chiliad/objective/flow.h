#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "chiliad/objective/flow_schedule.h"
#include "chiliad/spec/options/objective.h"

namespace chiliad::objective {

/// One item's draw of a time in (0, 1): t = 0 is data, 1 is noise. A function of the item's draw key alone.
/// Source: SD3, logit-normal density; shift t' = s t / (1 + (s - 1) t).
/// image_tokens: of the item, for the dynamic shift.
[[nodiscard]] float draw_time(const spec::ObjectiveOptions& options, uint64_t draw_key,
                              int64_t image_tokens = 0);

/// Density of the training times.
[[nodiscard]] TimeDensityOptions time_density(const spec::ObjectiveOptions& options);
/// Shift of the times for items of so many image tokens.
[[nodiscard]] double flow_shift(const spec::ObjectiveOptions& options, int64_t image_tokens);
/// A time of the density after the shift, kept off 0.
[[nodiscard]] float shifted_time(const spec::ObjectiveOptions& options, double time, int64_t image_tokens);

/// Whether this item trains without its caption.
[[nodiscard]] bool draw_caption_dropout(const spec::ObjectiveOptions& options, uint64_t draw_key);

/// Pixels as patches: uint8 [B, H, W, 3] to fp32 [B, N, 3 p p] in [-1, 1]; N row-major, channel last inside a
/// patch.
[[nodiscard]] at::Tensor patchify(const at::Tensor& pixels, int64_t patch);
/// Back to fp32 [B, H, W, 3] in the same range.
[[nodiscard]] at::Tensor unpatchify(const at::Tensor& patches, int64_t rows, int64_t columns, int64_t patch);

/// Standard normal [B, count], row i from draw_keys[i].
[[nodiscard]] at::Tensor draw_noise(std::span<const uint64_t> draw_keys, int64_t count);

/// x_t = (1 - t) x0 + t noise. x0, noise: [B, N, C]; t: [B].
[[nodiscard]] at::Tensor interpolate(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& t);

/// Velocity of that path: noise - x0.
[[nodiscard]] at::Tensor velocity_target(const at::Tensor& x0, const at::Tensor& noise);

/// Loss of each item, [B]: the mean squared error over its values, in velocity or sample space.
/// Velocity = noise - x0 = (x_t - x0) / t, with t floored at options.min_time where the network predicts x0.
[[nodiscard]] at::Tensor item_losses(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                                     const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& t);

/// The velocity that a prediction means at x_t.
[[nodiscard]] at::Tensor to_velocity(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                                     const at::Tensor& x_t, double t);

}  // namespace chiliad::objective
