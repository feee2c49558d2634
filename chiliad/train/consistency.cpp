#include "chiliad/train/consistency.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <torch/version.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "chiliad/base/json_text.h"
#include "chiliad/base/majority.h"
#include "chiliad/base/planted.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/io/file.h"

namespace chiliad::train {
namespace {

using Shards = std::span<const std::unique_ptr<parallel::ShardedLayer>>;

constexpr size_t kMaxNamedRanks = 8;
constexpr size_t kMaxNamedKeys = 4;
constexpr int64_t kMaxProgramBytes = int64_t{16} << 30;

std::string ranks_text(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMaxNamedRanks); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kMaxNamedRanks) text += fmt::format(" and {} more", ranks.size() - kMaxNamedRanks);
  return text;
}

/// Ranks whose values differ from the others'.
struct Difference {
  std::vector<int> odd;
  std::string text;  ///< "rank 1 has A, the other 3 have B", or all values where nobody is in the majority
};

/// values: of `ranks`; equal texts are equal values.
Difference compare_values(std::span<const int> ranks, std::span<const std::string> values) {
  const Odd odd = odd_ones(values);
  Difference difference;
  for (const size_t place : odd.places) difference.odd.push_back(ranks[place]);
  for (size_t i = 0; i < std::min(odd.places.size(), kMaxNamedRanks); ++i) {
    const size_t place = odd.places[i];
    difference.text += fmt::format("{}rank {} has {}", i == 0 ? "" : ", ", ranks[place], values[place]);
  }
  if (odd.places.empty() || !odd.decided) return difference;
  size_t other = 0;
  while (std::find(odd.places.begin(), odd.places.end(), other) != odd.places.end()) ++other;
  const size_t num_others = ranks.size() - odd.places.size();
  difference.text += num_others == 1 ? fmt::format(", rank {} has {}", ranks[other], values[other])
                                     : fmt::format(", the other {} have {}", num_others, values[other]);
  return difference;
}

std::vector<int> all_ranks(size_t count) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < count; ++rank) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

// --- identity -------------------------------------------------------------------------------------------

/// Finds the build id among the notes of the first object, which is the program.
int find_build_id(dl_phdr_info* info, size_t, void* out) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const auto* end = note + segment.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) header;
      std::memcpy(&header, note, sizeof(header));
      const char* name = note + sizeof(header);
      const auto* bytes = reinterpret_cast<const unsigned char*>(name + (header.n_namesz + 3) / 4 * 4);
      if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        auto& text = *static_cast<std::string*>(out);
        for (size_t k = 0; k < header.n_descsz; ++k) text += fmt::format("{:02x}", bytes[k]);
        return 1;
      }
      note = reinterpret_cast<const char*>(bytes) + (header.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

std::string program_identity() {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  if (!id.empty()) return "build " + id.substr(0, 16);
  const std::string bytes = io::read_text("/proc/self/exe", kMaxProgramBytes);
  return fmt::format("digest {:016x}", hash64(std::string_view(bytes)));
}

std::string torch_identity() {
  Dl_info info{};
  struct stat file {};
  const auto show = &at::show_config;
  void* function = nullptr;
  static_assert(sizeof(show) == sizeof(function));
  std::memcpy(&function, &show, sizeof(function));
  if (::dladdr(function, &info) == 0 || ::stat(info.dli_fname, &file) != 0) return TORCH_VERSION;
  return fmt::format("{} ({} bytes)", TORCH_VERSION, file.st_size);
}

void hide_folders(std::vector<spec::DataSource>& sources) {
  for (auto& source : sources) {
    if (!source.index.empty()) source.index = "any";
    hide_folders(source.sources);
  }
}

/// What of a run file all ranks must have alike. Files may lie elsewhere on another host (what is read of
/// them is compared in every step), and threads and caches of the loader change no number.
spec::RunFile shared_part(const spec::RunFile& run) {
  const spec::RunFile defaults;
  spec::RunFile shared = run;
  shared.run.dir = defaults.run.dir;
  if (shared.data.sources.empty()) shared.data.index = "any";  // must be something
  hide_folders(shared.data.sources);
  shared.data.tokenizer = defaults.data.tokenizer;
  shared.data.loader_threads = defaults.data.loader_threads;
  shared.data.loader_threads_max = defaults.data.loader_threads_max;
  shared.data.cache_bytes = defaults.data.cache_bytes;
  return shared;
}

spec::RunFile parse_shared(const std::string& yaml, int rank) {
  return spec::parse_run_file(yaml, fmt::format("run file of rank {}", rank), "run", {});
}

/// "model.width (64 on rank 1, else 32), ..." of the first odd rank.
std::string differing_keys(const std::vector<std::string>& configs, const std::vector<int>& odd) {
  const int first = odd.front();
  int other = 0;
  while (configs[static_cast<size_t>(other)] == configs[static_cast<size_t>(first)]) ++other;
  const auto keys = spec::compare(parse_shared(configs[static_cast<size_t>(other)], other),
                                  parse_shared(configs[static_cast<size_t>(first)], first));
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), kMaxNamedKeys); ++i) {
    text += fmt::format("{}{} is {} on rank {} and {} on rank {}", i == 0 ? "" : ", ", keys[i].key,
                        keys[i].new_value, first, keys[i].old_value, other);
  }
  if (keys.size() > kMaxNamedKeys) text += fmt::format(", and {} more", keys.size() - kMaxNamedKeys);
  return text;
}

[[noreturn]] void configuration_differs(comm::Group& world, const Identity& mine, std::vector<int> odd) {
  const auto configs = comm::gather_texts(world, mine.config);
  throw RankMismatch(ErrorKind::kInvalidInput, ranks_text(odd),
                     fmt::format("configuration: expected the same on all {} ranks, got another one: {}. "
                                 "Give every rank the same run file",
                                 world.size(), differing_keys(configs, odd)),
                     odd);
}

}  // namespace

Identity own_identity(const spec::RunFile& run, const std::string& resume) {
  Identity mine;
  mine.config = spec::to_yaml(shared_part(run));
  mine.start = resume.empty() ? "the beginning" : std::filesystem::path(resume).filename().string();
  mine.program = program_identity();
  mine.torch = torch_identity();
  return mine;
}

void check_identity(comm::Group& world, const Identity& mine) {
  if (world.size() == 1) return;
  std::string program = mine.program;
  if (planted_bug("other_program_file") && world.rank() == 1) program += " (planted)";
  const nlohmann::json own{{"config", fmt::format("{:016x}", hash64(std::string_view(mine.config)))},
                           {"start", mine.start},
                           {"program", program},
                           {"torch", mine.torch}};
  std::vector<nlohmann::json> all;
  for (const auto& text : comm::gather_texts(world, json_text(own)))
    all.push_back(parse_json<nlohmann::json>(text));
  const auto ranks = all_ranks(all.size());
  const auto compare = [&](const char* field) {
    std::vector<std::string> values;
    for (const auto& one : all) values.push_back(one.at(field).get<std::string>());
    return compare_values(ranks, values);
  };
  const auto refuse = [&](const char* field, const char* what, const char* fix) {
    auto difference = compare(field);
    if (difference.odd.empty()) return;
    throw RankMismatch(ErrorKind::kInvalidInput, ranks_text(difference.odd),
                       fmt::format("{}: expected the same on all {} ranks, got: {}. {}", what, ranks.size(),
                                   difference.text, fix),
                       difference.odd);
  };
  // What was built comes first: another program may understand the same run file otherwise.
  refuse("program", "program", "Install the same build on every machine");
  refuse("torch", "libtorch", "Install the same libtorch on every machine");
  auto config = compare("config");
  if (!config.odd.empty()) configuration_differs(world, mine, std::move(config.odd));
  refuse("start", "checkpoint to resume from", "Let every machine see the same run directory");
}

// --- steps ----------------------------------------------------------------------------------------------

void check_claims(int64_t step, std::span<const StepClaim> claims) {
  const bool alike = std::all_of(claims.begin(), claims.end(), [&](const auto& c) { return c == claims[0]; });
  if (alike) return;  // in nearly every step
  const auto ranks = all_ranks(claims.size());
  const auto refuse = [&](const char* what, auto text_of) {
    std::vector<std::string> values;
    for (const auto& claim : claims) values.push_back(text_of(claim));
    const auto difference = compare_values(ranks, values);
    if (difference.odd.empty()) return;
    throw RankMismatch(ErrorKind::kInternal, fmt::format("step {}", step),
                       fmt::format("{} must be the same on all ranks: {}", what, difference.text),
                       difference.odd);
  };
  refuse("the number of the step", [](const StepClaim& claim) { return std::to_string(claim.step); });
  refuse("the items", [](const StepClaim& claim) { return "items " + claim.items.hex(); });
  refuse("the program", [](const StepClaim& claim) { return fmt::format("program {:016x}", claim.program); });
}

// --- parameters -----------------------------------------------------------------------------------------

namespace {

/// A rank's part of every tensor.
struct PartDigests {
  std::vector<const spec::ParamDecl*> params;  // the same list on all ranks
  std::vector<size_t> layers;                  // of params
  std::vector<bool> replicated;                // tensor-parallel ranks have copies
  std::vector<uint64_t> values;                // positional, of this rank's part; zero where not asked for
};

PartDigests digest_parts(Shards shards, bool only_replicated) {
  PartDigests parts;
  for (size_t layer = 0; layer < shards.size(); ++layer) {
    auto& shard = *shards[layer];
    const size_t first = parts.params.size();
    for (const auto& param : shard.decl().params) {
      parts.params.push_back(&param);
      parts.layers.push_back(layer);
      parts.replicated.push_back(param.split == spec::Split::kNone);
      parts.values.push_back(0);
    }
    for (const auto& piece : shard.layout().shard_pieces()) {
      if (only_replicated && !piece.replicated) continue;
      const auto index = first + static_cast<size_t>(piece.param - shard.decl().params.data());
      const float* data = shard.shard_params() + piece.offset;
      parts.values[index] += checkpoint::positional_digest(DType::kF32, piece.param->shape, piece.box,
                                                           reinterpret_cast<const std::byte*>(data));
    }
  }
  return parts;
}

/// Every rank's values, [rank][value].
std::vector<std::vector<uint64_t>> gather(comm::Group& world, std::span<const uint64_t> mine) {
  const auto count = static_cast<int64_t>(mine.size());
  at::Tensor in = at::empty({count}, at::kLong);
  std::memcpy(in.mutable_data_ptr(), mine.data(), mine.size_bytes());
  at::Tensor out = at::empty({count * world.size()}, at::kLong);
  world.all_gather(out, in)->wait();
  std::vector<std::vector<uint64_t>> all(static_cast<size_t>(world.size()),
                                         std::vector<uint64_t>(mine.size()));
  const auto* data = static_cast<const std::byte*>(out.const_data_ptr());
  for (auto& values : all) {
    std::memcpy(values.data(), data, mine.size_bytes());
    data += mine.size_bytes();
  }
  return all;
}

uint64_t digest_of(const PartDigests& parts, bool only_replicated) {
  Hasher hasher;
  for (size_t i = 0; i < parts.values.size(); ++i) {
    if (!only_replicated || parts.replicated[i]) hasher.add(parts.values[i]);
  }
  return hasher.digest().low;
}

/// Ranks that must have the same values, and of which tensors.
struct Copies {
  std::vector<int> ranks;
  bool only_replicated = false;
};

std::vector<Copies> all_copies(const parallel::MeshShape& shape) {
  std::vector<Copies> all;
  for (int shard = 0; shape.dp_replicate > 1 && shard < shape.dp_shard; ++shard) {
    for (int tp = 0; tp < shape.tp; ++tp) {
      auto& copies = all.emplace_back();
      for (int replica = 0; replica < shape.dp_replicate; ++replica) {
        copies.ranks.push_back(parallel::MeshPlace{replica, shard, tp}.rank(shape));
      }
    }
  }
  for (int dp = 0; shape.tp > 1 && dp < shape.dp(); ++dp) {
    auto& copies = all.emplace_back();
    copies.only_replicated = true;
    for (int tp = 0; tp < shape.tp; ++tp) copies.ranks.push_back(dp * shape.tp + tp);
  }
  return all;
}

Difference compare_column(const Copies& copies, const std::vector<std::vector<uint64_t>>& all,
                          size_t column) {
  std::vector<std::string> values;
  for (const int rank : copies.ranks) {
    values.push_back(fmt::format("{:016x}", all[static_cast<size_t>(rank)][column]));
  }
  return compare_values(copies.ranks, values);
}

[[noreturn]] void parameters_differ(const PartDigests& parts, const std::vector<Copies>& copies,
                                    parallel::Mesh& mesh, int64_t step) {
  const auto all = gather(mesh.world(), parts.values);
  for (size_t i = 0; i < parts.values.size(); ++i) {
    for (const auto& one : copies) {
      if (one.only_replicated && !parts.replicated[i]) continue;
      auto difference = compare_column(one, all, i);
      if (difference.odd.empty()) continue;
      throw RankMismatch(
          ErrorKind::kCorruptData, fmt::format("step {}", step),
          fmt::format(
              "parameters of {} are not those of {}: layer {}, {}: digests: {}. Memory or a transfer "
              "was damaged, and nothing of this state is saved. The same command goes on from the last "
              "checkpoint; if it happens again, leave out the machine of {}",
              ranks_text(difference.odd), one.only_replicated ? "its tensor-parallel peers" : "its replicas",
              parts.layers[i], parts.params[i]->name, difference.text, ranks_text(difference.odd)),
          difference.odd);
    }
  }
  throw InternalError(fmt::format("step {}", step), "digests of parameters differ, those of no tensor do");
}

}  // namespace

void check_parameters(Shards shards, parallel::Mesh& mesh, int64_t step) {
  const auto& shape = mesh.shape();
  if (shape.dp_replicate == 1 && shape.tp == 1) return;
  const auto parts = digest_parts(shards, shape.dp_replicate == 1);
  const std::vector<uint64_t> mine{digest_of(parts, false), digest_of(parts, true)};
  const auto all = gather(mesh.world(), mine);
  const auto copies = all_copies(shape);
  for (const auto& one : copies) {
    if (!compare_column(one, all, one.only_replicated ? 1 : 0).odd.empty()) {
      parameters_differ(parts, copies, mesh, step);
    }
  }
}

uint64_t parameters_digest(Shards shards, parallel::Mesh& mesh) {
  const auto parts = digest_parts(shards, false);
  uint64_t mine = 0;
  for (size_t i = 0; i < parts.values.size(); ++i) {
    if (parts.replicated[i] && mesh.place().tp > 0) continue;
    mine += parts.values[i] * (hash64(std::string_view(parts.params[i]->name)) | 1U);
  }
  if (mesh.place().replica > 0) mine = 0;
  uint64_t sum = 0;
  for (const auto& values : gather(mesh.world(), std::vector<uint64_t>{mine})) sum += values.front();
  return sum;
}

void maybe_flip_a_bit(Shards shards, const parallel::Mesh& mesh, int64_t step) {
  const bool owned = planted_bug("flipped_owned_bit");
  const bool copy = planted_bug("flipped_copy_bit");
  if (!(owned || copy || planted_bug("flipped_bit")) || mesh.rank() != 1 || step != 2) return;
  for (const auto& shard : shards) {
    const auto& layout = shard->layout();
    for (const auto& piece : owned ? layout.owned_pieces() : layout.shard_pieces()) {
      if (copy && !piece.replicated) continue;
      float& value = (owned ? shard->owned_params() : shard->shard_params())[piece.offset];
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ 1U);
      return;
    }
  }
}

}  // namespace chiliad::train
