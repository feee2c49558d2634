#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/spec/options/checkpoint.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/spec/options/encoders.h"
#include "chiliad/spec/options/evaluation.h"
#include "chiliad/spec/options/model.h"
#include "chiliad/spec/options/objective.h"
#include "chiliad/spec/options/observe.h"
#include "chiliad/spec/options/optimizer.h"
#include "chiliad/spec/options/parallel.h"
#include "chiliad/spec/options/run.h"
#include "chiliad/spec/options/store.h"
#include "chiliad/spec/options/vision.h"

namespace chiliad::spec {

/// A run file, read and checked. One strict YAML with `version: 1`.
struct RunFile {
  std::vector<std::string> extensions;  ///< libraries, absolute paths (spec/extension.h)
  RunOptions run;
  ModelOptions model;
  DataOptions data;
  VisionOptions vision;
  EncodersOptions encoders;
  ObjectiveOptions objective;
  OptimizerOptions optimizer;
  ParallelOptions parallel;
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  ObserveOptions observe;
  SuperviseOptions supervise;
  StoreOptions store;
};

/// Reads `path` and applies `overrides` ("section.key=value", from --set). Throws InvalidInput with
/// "file:line:column: section.key: expected ..., got ...": unknown keys name the nearest valid one, numbers
/// outside their range name the range, and YAML that means different things to different readers (yes/no,
/// 0123, 12:30, duplicate keys, tags, aliases beyond a bound, several documents, tabs, bytes that are not
/// UTF-8) is refused.
[[nodiscard]] RunFile read_run_file(const std::filesystem::path& path,
                                    const std::vector<std::string>& overrides);
/// The same from text; `name` stands for the path in messages, `stem` for the default run name, `folder` is
/// what the paths of libraries are relative to.
[[nodiscard]] RunFile parse_run_file(std::string_view text, const std::string& name, const std::string& stem,
                                     const std::vector<std::string>& overrides,
                                     const std::filesystem::path& folder = {});

/// YAML with every key resolved; parse_run_file reads it back to an equal RunFile.
[[nodiscard]] std::string to_yaml(const RunFile& file);

/// One difference between two run files.
struct Difference {
  std::string key;
  std::string old_value;
  std::string new_value;
  bool free_on_resume = false;  ///< steps, rates, logging, layout, intervals
};
[[nodiscard]] std::vector<Difference> compare(const RunFile& old_file, const RunFile& new_file);

/// Digest of the settings that decide the content of steps (data section without loader and micro-batch keys,
/// seed).
[[nodiscard]] Digest content_digest(const RunFile& file);

/// Markdown reference of all sections, generated from the option tables.
[[nodiscard]] std::string reference_page();
/// JSON Schema (draft 2020-12) of a run file.
[[nodiscard]] std::string json_schema();

}  // namespace chiliad::spec
