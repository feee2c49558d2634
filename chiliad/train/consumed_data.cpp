#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/base/planted.h"
#include "chiliad/loader/make_slot.h"
#include "chiliad/train/consistency.h"

namespace chiliad::train {
namespace {

/// Items of a step in the order of slots, as [slot, item].
std::vector<std::pair<size_t, size_t>> items_of(const loader::RankStep& step) {
  std::vector<std::pair<size_t, size_t>> items;
  for (size_t slot = 0; slot < step.slots.size(); ++slot) {
    for (size_t i = 0; i < step.slots[slot].items.size(); ++i) items.emplace_back(slot, i);
  }
  return items;
}

std::vector<std::vector<uint64_t>> gather_numbers(comm::Group& world, const std::vector<uint64_t>& mine) {
  std::vector<std::vector<uint64_t>> all;
  for (const auto& text : comm::gather_texts(world, json_text(nlohmann::json(mine))))
    all.push_back(parse_json<nlohmann::json>(text).get<std::vector<uint64_t>>());
  return all;
}

/// Where two tensor-parallel peers differ first.
struct Place {
  size_t first_rank = 0;  // of the peers
  size_t item = 0;        // in items_of
};

std::optional<Place> find_difference(const std::vector<std::vector<uint64_t>>& contents, size_t tp) {
  for (size_t rank = 0; rank < contents.size(); ++rank) {
    const auto& peers = contents[rank - rank % tp];
    for (size_t item = 0; item < std::min(peers.size(), contents[rank].size()); ++item) {
      if (contents[rank][item] != peers[item]) return Place{rank - rank % tp, item};
    }
  }
  return std::nullopt;
}

/// What a rank says of the item: where it is, and its digest when loaded again.
std::string testimony(const loader::RankStep& step, size_t item, const index::Index& index,
                      const std::function<uint64_t(size_t, size_t)>& again) {
  const auto [slot, i] = items_of(step)[item];
  const auto& of = step.slots[slot].items[i];
  uint64_t now = 0;
  std::string refusal;
  try {
    now = again(slot, i);
  } catch (const Error& error) {  // another finding, not the end of this one
    refusal = error.what();
  }
  return json_text_replacing(nlohmann::json{
      {"item", fmt::format("item {} (sample {}, {}, {})", of.position, of.sample, index.key(of.sample),
                           loader::part_place(index, of.sample, of.caption))},
      {"now", now},
      {"refusal", refusal}});
}

}  // namespace

void refuse_other_data(const loader::RankStep& step, std::span<const uint64_t> consumed,
                       const index::Index& index, parallel::Mesh& mesh,
                       const std::function<uint64_t(size_t, size_t)>& again) {
  std::vector<uint64_t> mine;
  for (const auto& [slot, i] : items_of(step)) mine.push_back(step.slots[slot].content[i]);
  const auto contents = gather_numbers(mesh.world(), mine);
  const auto tp = static_cast<size_t>(mesh.shape().tp);
  const auto place = find_difference(contents, tp);
  const auto rank = static_cast<size_t>(mesh.rank());
  const bool is_peer = place.has_value() && rank - rank % tp == place->first_rank;
  const auto said =
      comm::gather_texts(mesh.world(), is_peer ? testimony(step, place->item, index, again) : "");
  if (!place.has_value()) {
    throw InternalError(
        fmt::format("step {}", step.step),
        fmt::format("tensor-parallel ranks loaded other items ({:016x} on rank 0)", consumed[0]));
  }
  std::vector<int> odd;
  std::string text;
  for (size_t peer = place->first_rank; peer < place->first_rank + tp; ++peer) {
    const auto json = parse_json<nlohmann::json>(said[peer]);
    const auto now = json.at("now").get<uint64_t>();
    const auto refusal = json.at("refusal").get<std::string>();
    if (now != contents[peer][place->item]) odd.push_back(static_cast<int>(peer));
    text +=
        fmt::format("{}rank {} has {:016x} ({})", text.empty() ? "" : ", ", peer, contents[peer][place->item],
                    refusal.empty() ? fmt::format("loaded again: {:016x}", now) : refusal);
  }
  std::string ranks;
  for (const int one : odd) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", one);
  const std::string cause =
      odd.empty()
          ? "every rank loads again what it had: they do not see the same files, or run other decoders"
          : fmt::format("data of rank {} changed after it was loaded: memory of its machine is damaged",
                        ranks);
  if (odd.empty()) {
    for (size_t peer = place->first_rank; peer < place->first_rank + tp; ++peer)
      odd.push_back(static_cast<int>(peer));
  }
  throw RankMismatch(
      ErrorKind::kCorruptData, fmt::format("step {}", step.step),
      fmt::format(
          "tensor-parallel ranks must load the same data: {}: {}; {}. Nothing of this step is saved; the "
          "same command goes on from the last checkpoint",
          parse_json<nlohmann::json>(said[place->first_rank]).at("item").get<std::string>(), text, cause),
      odd);
}

void maybe_spoil_data(const parallel::Mesh& mesh, loader::RankStep& step) {
  if (!planted_bug("spoiled_data") || mesh.rank() != 1 || step.step != 2) return;
  for (auto& batch : step.slots) {
    if (batch.items.empty()) continue;
    const auto place = loader::place_of(batch, 0);
    auto bytes = place.pixels.empty() ? std::as_writable_bytes(place.tokens) : place.pixels;
    bytes[0] ^= std::byte{1};
    batch.content[0] = loader::content_digest(place);
    step.consumed = loader::consumed_digest(step);
    return;
  }
}

}  // namespace chiliad::train
