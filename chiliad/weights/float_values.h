#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "chiliad/weights/weight_source.h"

namespace chiliad::weights {

/// What read_floats refuses.
enum class Check { kFinite, kNothing };

/// Values [first, first + out.size()) of a tensor of type fp64, fp32, fp16 or bf16, as fp32. Reads no more of
/// the file than that. Throws CorruptData where one of them is NaN or infinite, unless nothing is checked.
void read_floats(const WeightSource& source, std::string_view key, int64_t first, std::span<float> out,
                 Check check = Check::kFinite);

}  // namespace chiliad::weights
