#include "chiliad/supervise/launch/stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "chiliad/base/majority.h"

namespace chiliad::supervise {
namespace {

constexpr size_t kMaxNamed = 8;   // ranks of one place
constexpr size_t kMaxPlaces = 4;  // of the others

std::string words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string ranks_text(const std::vector<int>& ranks) {
  const size_t named = std::min(ranks.size(), kMaxNamed);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < named; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

/// Orders positions of a step: what comes later in a step, or in a later step, is ahead.
auto order(const Position& at) {
  const bool finished = at.phase == "finished";
  const int between = at.instruction >= 0 || at.phase != "data_wait" ? 0 : 1;  // after a checkpoint
  return std::tuple(finished, at.changed != Nanoseconds(0), at.step, std::max(at.instruction, -1), between);
}

/// "rank 0 is at ...; ranks 1, 3 are at ...", the ranks that are behind first.
std::string places_text(const std::vector<Position>& positions, const std::vector<int>& ranks) {
  std::map<std::pair<decltype(order(positions.front())), std::string>, std::vector<int>> places;
  for (const int rank : ranks) {
    const auto& at = positions[static_cast<size_t>(rank)];
    places[{order(at), describe(at)}].push_back(rank);
  }
  std::string text;
  size_t told = 0;
  for (const auto& [place, there] : places) {
    if (told++ == kMaxPlaces) return text + fmt::format("; and {} more places", places.size() - kMaxPlaces);
    text += fmt::format("{}{} {} at {}", text.empty() ? "" : "; ", ranks_text(there),
                        there.size() == 1 ? "is" : "are", place.second);
  }
  return text;
}

std::vector<int> all_but(size_t count, const std::vector<int>& some) {
  std::vector<int> others;
  for (int rank = 0; rank < static_cast<int>(count); ++rank) {
    if (std::find(some.begin(), some.end(), rank) == some.end()) others.push_back(rank);
  }
  return others;
}

Stall stall_of(const std::vector<Position>& positions, std::vector<int> odd, const char* what) {
  Stall stall;
  const auto others = all_but(positions.size(), odd);
  stall.text = fmt::format("{} {} {}: {}", ranks_text(odd), odd.size() == 1 ? "is" : "are", what,
                           places_text(positions, odd));
  if (!others.empty()) stall.text += fmt::format(". Waiting: {}", places_text(positions, others));
  stall.odd = std::move(odd);
  return stall;
}

/// Those of `ranks` that others waited for, if there are any; else all of them.
std::vector<int> narrowed(const std::vector<int>& ranks, const std::vector<int>& accused) {
  std::vector<int> both;
  for (const int rank : ranks) {
    if (std::find(accused.begin(), accused.end(), rank) != accused.end()) both.push_back(rank);
  }
  return both.empty() ? ranks : both;
}

std::vector<int> stopped_ranks(const std::vector<Position>& positions) {
  std::vector<int> stopped;
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    if (positions[rank].stopped) stopped.push_back(static_cast<int>(rank));
  }
  return stopped;
}

std::vector<int> ranks_behind(const std::vector<Position>& positions) {
  const auto before = [](const auto& a, const auto& b) { return order(a) < order(b); };
  const auto least = order(*std::min_element(positions.begin(), positions.end(), before));
  std::vector<int> behind;
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    if (order(positions[rank]) == least) behind.push_back(static_cast<int>(rank));
  }
  return behind;
}

}  // namespace

std::string describe(const Position& at) {
  if (at.changed == Nanoseconds(0)) return "the start";
  if (at.instruction < 0) return fmt::format("step {}, {}", at.step, words(at.phase));
  std::string text =
      fmt::format("step {}, {}", at.step, words(at.operation.empty() ? at.phase : at.operation));
  if (at.layer >= 0) text += fmt::format(" of layer {}", at.layer);
  if (at.slot >= 0) text += fmt::format(", slot {}", at.slot);
  text += fmt::format(" (instruction {}", at.instruction);
  if (at.program != 0) text += fmt::format(" of program {:016x}", at.program);
  return text + ")";
}

Stall compare_programs(const std::vector<Position>& positions) {
  std::map<int64_t, std::vector<int>> by_step;
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    const auto& at = positions[rank];
    if (at.instruction >= 0 && at.program != 0) by_step[at.step].push_back(static_cast<int>(rank));
  }
  for (const auto& [step, ranks] : by_step) {
    std::vector<uint64_t> programs;
    for (const int rank : ranks) programs.push_back(positions[static_cast<size_t>(rank)].program);
    const Odd odd = odd_ones<uint64_t>(programs);
    if (odd.places.empty()) continue;
    std::vector<int> who;
    for (const size_t place : odd.places) who.push_back(ranks[place]);
    return stall_of(positions, std::move(who),
                    odd.decided ? "running another program than the others" : "running different programs");
  }
  return {};
}

Stall explain_stall(const std::vector<Position>& positions, const std::vector<int>& accused) {
  if (positions.empty()) return {};
  Stall programs = compare_programs(positions);
  if (!programs.odd.empty()) return programs;
  auto stopped = stopped_ranks(positions);
  if (!stopped.empty()) return stall_of(positions, std::move(stopped), "stopped by a signal");
  if (positions.size() == 1) return {{0}, places_text(positions, {0})};
  const auto behind = ranks_behind(positions);
  auto odd = narrowed(behind, accused);
  if (odd.size() < positions.size()) {
    const bool together = behind.size() == positions.size();
    return stall_of(positions, std::move(odd), together ? "waited for by the others" : "behind");
  }
  return {{}, fmt::format("nobody is behind: {}", places_text(positions, all_but(positions.size(), {})))};
}

}  // namespace chiliad::supervise
