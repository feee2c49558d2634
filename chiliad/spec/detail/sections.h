#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/spec/detail/option.h"

namespace chiliad::spec::detail {

Section run_section();
Section model_section();
Section data_section();
Section vision_section();
Section encoders_section();
Section objective_section();
Section optimizer_section();
Section precision_section();
Section parallel_section();
Section evaluation_section();
Section checkpoint_section();
Section observe_section();
Section supervise_section();
Section store_section();

/// All sections in the order of the file.
[[nodiscard]] const std::vector<Section>& sections();
[[nodiscard]] const Section* find_section(std::string_view name);
[[nodiscard]] const Option* find_option(const Section& section, std::string_view name);
[[nodiscard]] std::vector<std::string> section_names();
[[nodiscard]] std::vector<std::string> option_names(const Section& section);

/// "section.key" that replaced `key` ("section.key"), or that other systems call so.
[[nodiscard]] std::optional<std::string> renamed_key(std::string_view key);

}  // namespace chiliad::spec::detail
