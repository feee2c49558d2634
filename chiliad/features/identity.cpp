#include "chiliad/features/identity.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/stepplan/mixer.h"

namespace chiliad::features {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunk = 4 << 20;
constexpr std::string_view kPython = ".py:";

void add_file(Hasher& hasher, const fs::path& path) {
  const auto file = io::File::open_read(path);
  const int64_t size = file.size();
  hasher.add(path.filename().string()).add(size);
  std::vector<std::byte> chunk;
  for (int64_t at = 0; at < size; at += kChunk) {
    chunk.resize(static_cast<size_t>(std::min(kChunk, size - at)));
    file.read_at(at, chunk);
    hasher.add_bytes(chunk);
  }
}

bool decides(const fs::path& path) {
  constexpr std::array<std::string_view, 4> kEndings{".json", ".txt", ".model", ".safetensors"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

/// Of a class in a Python file: what the file says and the class's name.
std::string python_fact(const char* key, const std::string& encoder) {
  const size_t end = encoder.find(kPython) + kPython.size() - 1;  // of the file's name
  const fs::path file = encoder.substr(0, end);
  if (!fs::is_regular_file(file)) {
    throw InvalidInput(
        key, fmt::format("expected a Python file and a class, as in enc.py:Encoder, got {}, and there "
                         "is no {}",
                         encoder, file.string()));
  }
  Hasher hasher;
  add_file(hasher, file);
  return hasher.add(encoder.substr(end)).digest().hex();
}

std::string encoder_fact(const char* key, const std::string& folder) {
  if (folder.empty()) throw InvalidInput(key, "expected the folder of an encoder, got nothing. Set it");
  if (is_python(folder)) return python_fact(key, folder);
  if (!fs::is_directory(folder)) {
    throw InvalidInput(
        key,
        fmt::format("expected the folder of an encoder, or enc.py:Encoder, got {}, which is no folder. Paths "
                    "are from the current folder",
                    folder));
  }
  return encoder_digest(folder).hex();
}

}  // namespace

const char* kind_name(Kind kind) {
  return kind == Kind::kLatents ? "latents" : "text";
}

Digest Identity::key() const {
  Hasher hasher;
  hasher.add(kind_name(kind));
  for (const auto& [name, value] : facts) hasher.add(name).add(value);
  return hasher.digest();
}

std::string Identity::folder_name() const {
  return fmt::format("{}-{}", kind_name(kind), key().hex().substr(0, 16));
}

Identity identity_of(const spec::RunFile& run, Kind kind) {
  const auto& data = run.data;
  const auto& encoders = run.encoders;
  Identity identity;
  identity.kind = kind;
  const auto add = [&](const char* name, std::string value) {
    identity.facts.emplace_back(name, std::move(value));
  };
  if (kind == Kind::kLatents) {
    add("encoder", encoder_fact("encoders.pictures", encoders.pictures));
    add("encoders.latents", encoders.latents);
    if (encoders.tile != 0) add("encoders.tile", fmt::format("{} {}", encoders.tile, encoders.tile_overlap));
    add("data.resolution", fmt::format("{}", data.resolution));
    add("data.bucket_step", fmt::format("{}", data.bucket_step));
    add("data.bucket_min", fmt::format("{}", data.bucket_min));
    add("data.bucket_max", fmt::format("{}", data.bucket_max));
    if (data.buckets != "auto") add("data.buckets", data.buckets);
    if (data.bucket_choice != "auto") add("data.bucket_choice", data.bucket_choice);
    if (data.bucket_choice == "most_pixels") add("data.max_crop", fmt::format("{}", data.max_crop));
    if (data.bucket_no_upscale) add("data.bucket_no_upscale", "true");
    add("data.background", data.background);
    add("data.flip", data.flip ? "true" : "false");
    if (data.to_srgb) add("data.to_srgb", "true");
    if (data.dct_margin != 0.0) add("data.dct_margin", fmt::format("{}", data.dct_margin));
  } else {
    add("encoder", encoder_fact("encoders.text", encoders.text));
    add("model.text_max_tokens", fmt::format("{}", run.model.text_max_tokens));
    add("padding", spec::pads_captions(run.model) ? "kept" : "none");
  }
  add("encoders.dtype", encoders.dtype);
  add("encoders.batch", fmt::format("{}", encoders.batch));
  if (encoders.compute != "fp32") add("encoders.compute", encoders.compute);
  // Which samples and captions there are.
  add("data.languages", fmt::format("{}", fmt::join(data.languages, " ")));
  add("data.max_aspect_error", fmt::format("{}", data.max_aspect_error));
  add("data.limit", fmt::format("{}", data.limit));
  add("data.held_out", fmt::format("{}", data.held_out));
  return identity;
}

std::vector<spec::RunFile> source_runs(const spec::RunFile& run) {
  if (run.data.sources.empty()) return {run};
  std::vector<spec::RunFile> runs;
  for (auto source : stepplan::leaves_of(run.data.sources)) {
    auto& own = runs.emplace_back(run);
    if (!source.languages.empty()) own.data.languages = source.languages;
    source.weight = spec::DataSource().weight;  // what it has beside others may be none
    source.ramp = false;
    own.data.sources = {std::move(source)};
  }
  return runs;
}

std::vector<Identity> identities_of(const spec::RunFile& run, Kind kind) {
  const Identity whole = identity_of(run, kind);  // reads the encoder, once
  std::vector<Identity> identities;
  for (const auto& own : source_runs(run)) {
    auto& identity = identities.emplace_back(whole);
    for (auto& [name, value] : identity.facts) {
      if (name == "data.languages") value = fmt::format("{}", fmt::join(own.data.languages, " "));
    }
  }
  return identities;
}

std::vector<Kind> kinds_of(const spec::RunFile& run) {
  if (!spec::is_latent_diffusion(run.model)) return {};
  if (!spec::reads_captions(run.model)) return {Kind::kLatents};
  return {Kind::kLatents, Kind::kText};
}

bool is_python(std::string_view encoder) {
  return encoder.find(kPython) != std::string_view::npos;
}

Digest encoder_digest(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && decides(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Hasher hasher;
  for (const auto& file : files) add_file(hasher, file);
  for (const char* part :
       {"text_encoder", "text_encoder_2", "text_encoder_3", "tokenizer", "tokenizer_2", "tokenizer_3"}) {
    if (fs::is_directory(folder / part)) hasher.add(part).add(encoder_digest(folder / part));
  }
  return hasher.digest();
}

}  // namespace chiliad::features
