#include "chiliad/weights/key_tables/autoencoder.h"

#include <array>
#include <utility>

namespace chiliad::weights {
namespace {

/// Old and new name of each product of the middle's attention.
constexpr std::array<std::pair<const char*, const char*>, 4> kAttentionNames = {
    {{"query", "to_q"}, {"key", "to_k"}, {"value", "to_v"}, {"proj_attn", "to_out.0"}}};

constexpr const char* kBefore = R"(^((?:encoder|decoder)\.mid_block\.attentions\.0)\.)";
constexpr const char* kBehind = R"(\.(weight|bias)$)";

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) out += c == '.' ? std::string("\\.") : std::string(1, c);
  return out;
}

KeyRule rule(const char* from, const char* to) {
  return {kBefore + escaped(from) + kBehind, std::string("$1.") + to + ".$2"};
}

}  // namespace

KeyTable autoencoder_keys() {
  std::vector<KeyRule> rules;
  for (const auto& [old_name, new_name] : kAttentionNames) rules.push_back(rule(old_name, new_name));
  return KeyTable(std::move(rules));
}

KeyTable old_autoencoder_keys() {
  std::vector<KeyRule> rules;
  for (const auto& [old_name, new_name] : kAttentionNames) rules.push_back(rule(new_name, old_name));
  return KeyTable(std::move(rules));
}

}  // namespace chiliad::weights
