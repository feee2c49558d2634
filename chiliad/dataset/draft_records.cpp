#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/base/rng.h"
#include "chiliad/dataset/detail/record_shards.h"
#include "chiliad/text/stored_text.h"

namespace chiliad::dataset::detail {
namespace {

namespace fs = std::filesystem;
using index::MediaType;
using index::SourceFile;

void read_records(const fs::path& path, const OnRecord& on_record) {
  const io::File file = io::File::open_read(path);
  path.extension() == ".json" ? read_json_list(file, on_record) : read_lines(file, on_record);
}

/// The records of a file that a mixture takes, in their order: the same ones at every call.
void read_sampled(const fs::path& path, const spec::Sampling& sampling, const OnRecord& on_record) {
  using Kind = spec::Sampling::Kind;
  if (sampling.kind == Kind::kAll) return read_records(path, on_record);
  int64_t total = 0;
  read_records(path, [&](const Record& /*record*/) { ++total; });
  const int64_t wanted = sampling.count(total);
  Rng rng({hash64("mixture"), hash64(path.filename().string()), static_cast<uint64_t>(total)});
  int64_t at = 0;
  int64_t taken = 0;
  read_records(path, [&](const Record& record) {
    const int64_t place = at++;
    if (place >= total) return;  // the file has grown meanwhile
    bool takes = place < wanted;
    if (sampling.kind == Kind::kEnd) takes = place >= total - wanted;
    // So every set of so many records is as likely as any other.
    if (sampling.kind == Kind::kRandom)
      takes = rng.below(static_cast<uint64_t>(total - place)) < static_cast<uint64_t>(wanted - taken);
    if (!takes) return;
    ++taken;
    on_record(record);
  });
  log_info("{}: {} of {} records are taken", path.string(), taken, total);
}

fs::path images_of(const SourceListing& listing, const SourceFile& file) {
  if (!listing.images_folder.empty()) return listing.images_folder;
  return (listing.root / file.path).parent_path();
}

/// The texts of the first name that has any; `problem` where one of them is no text.
struct Names {
  std::vector<std::string> texts;
  std::string problem;
};

Names texts_of(std::string_view record, const JsonStrings& strings, size_t num_names) {
  Names names;
  for (size_t name = 0; name < num_names && names.texts.empty(); ++name) {
    for (const JsonString& string : strings.found) {
      if (string.name != name) continue;
      auto text = text::text_of_json_string(record.substr(string.offset, string.length));
      if (!text.refusal.empty()) names.problem = "image: " + text.refusal;
      names.texts.push_back(std::move(text.text));
    }
  }
  return names;
}

PartDraft whole_record(const Record& record, MediaType media) {
  return {.file = 0, .offset = 0, .length = record.text.size(), .media = media, .is_caption = true};
}

class TableDraft {
 public:
  TableDraft(const FieldNames& names, RecordShards& shards)
      : images_(image_names(names)), captions_(caption_names(names)), shards_(shards) {}

  void add_json(const Record& record) {
    if (!record.problem.empty()) return shards_.add_bad(record, record.problem);
    const JsonStrings strings = find_json_strings(record.text, images_);
    if (!strings.problem.empty()) return shards_.add_bad(record, strings.problem);
    const Names names = texts_of(record.text, strings, images_.size());
    if (!names.problem.empty()) return shards_.add_bad(record, names.problem);
    if (names.texts.size() != 1) {
      return shards_.add_bad(record, fmt::format("names {} pictures in {}: expected one", names.texts.size(),
                                                 fmt::join(images_, ", ")));
    }
    shards_.add(record, names.texts, whole_record(record, MediaType::kJson));
  }

  /// The first row says which column is which.
  void read_csv_file(const fs::path& path) {
    const io::File file = io::File::open_read(path);
    std::optional<Columns> columns;
    read_csv(file, path.extension() == ".tsv" ? '\t' : ',', [&](const Record& row, const auto& fields) {
      if (columns.has_value()) return add_row(row, fields, *columns);
      columns = find_columns(path, row, fields);
    });
    if (!columns.has_value()) throw InvalidInput(path.string(), "has no row that names the columns");
  }

 private:
  struct Columns {
    size_t image = 0;
    std::optional<size_t> caption;
    size_t count = 0;
  };

  [[nodiscard]] Columns find_columns(const fs::path& path, const Record& row,
                                     const std::vector<CsvField>& fields) const {
    std::vector<std::string> header;
    for (const CsvField& field : fields)
      header.push_back(text::text_of_csv_field(row.text.substr(field.offset, field.length)).text);
    const auto find = [&](const std::vector<std::string>& wanted) -> std::optional<size_t> {
      for (const std::string& name : wanted) {
        const auto at = std::find(header.begin(), header.end(), name);
        if (at != header.end()) return static_cast<size_t>(at - header.begin());
      }
      return std::nullopt;
    };
    const auto image = find(images_);
    const auto caption = find(captions_);
    if (!image.has_value() || !caption.has_value()) {
      throw InvalidInput(
          path.string(),
          fmt::format("the first row names the columns {}: expected one of {} for the picture and one "
                      "of {} for the caption. Name them with --image-key and --caption-key",
                      fmt::join(header, ", "), fmt::join(images_, ", "), fmt::join(captions_, ", ")));
    }
    return {*image, caption, header.size()};
  }

  void add_row(const Record& row, const std::vector<CsvField>& fields, const Columns& columns) {
    if (!row.problem.empty()) return shards_.add_bad(row, row.problem);
    if (fields.size() != columns.count) {
      return shards_.add_bad(
          row, fmt::format("has {} fields, expected {} as the first row", fields.size(), columns.count));
    }
    const CsvField& image = fields[columns.image];
    const auto name = text::text_of_csv_field(row.text.substr(image.offset, image.length));
    if (!name.refusal.empty()) return shards_.add_bad(row, "image: " + name.refusal);
    PartDraft part = whole_record(row, MediaType::kCsv);
    part.caption_offset = fields[*columns.caption].offset;
    part.caption_length = fields[*columns.caption].length;
    shards_.add(row, {name.text}, part);
  }

  std::vector<std::string> images_;
  std::vector<std::string> captions_;
  RecordShards& shards_;
};

const std::vector<SourceFile>& table_files(const SourceListing& listing) {
  if (!listing.tables.empty()) return listing.tables;
  return listing.lines.empty() ? listing.lists : listing.lines;
}

/// Ends a reading after its first record; never leaves this file.
struct FirstRecord {
  std::string text;
};

std::string first_record(const fs::path& path) {
  try {
    read_records(path, [](const Record& record) { throw FirstRecord{std::string(record.text)}; });
  } catch (FirstRecord& record) {
    return std::move(record.text);
  }
  return {};
}

}  // namespace

std::vector<std::string> image_names(const FieldNames& names) {
  if (!names.image.empty()) return {names.image};
  return {"file_name", "image", "image_path", "path", "filepath", "filename"};
}

std::vector<std::string> caption_names(const FieldNames& names) {
  if (!names.caption.empty()) return {names.caption};
  return {"caption", "text", "prompt"};
}

void draft_table(const SourceListing& listing, const FieldNames& names, int64_t shard_bytes,
                 const OnDraft& on_draft, std::vector<BadSample>& unnamed) {
  RecordShards shards(listing.root, shard_bytes, on_draft);
  TableDraft table(names, shards);
  for (const SourceFile& file : table_files(listing)) {
    const fs::path path = listing.root / file.path;
    shards.open(path, images_of(listing, file));
    if (path.extension() == ".csv" || path.extension() == ".tsv") {
      table.read_csv_file(path);
    } else {
      read_records(path, [&](const Record& record) { table.add_json(record); });
    }
  }
  shards.finish();
  for (const SourceFile& image : listing.images) {
    if (!shards.has_used(image.path)) unnamed.push_back({image.path, image.path, "no row names the picture"});
  }
}

void draft_conversations(const SourceListing& listing, int64_t shard_bytes, const OnDraft& on_draft) {
  RecordShards shards(listing.root, shard_bytes, on_draft);
  const std::vector<std::string> names{"image", "images", "id"};
  std::unordered_set<uint64_t> ids;
  int64_t repeated = 0;
  const auto add = [&](const Record& record) {
    JsonStrings strings = find_json_strings(record.text, names);
    if (!record.problem.empty() || !strings.problem.empty())
      return shards.add_bad(record, record.problem.empty() ? strings.problem : record.problem);
    for (const JsonString& id : strings.found) {
      if (id.name == 2 && !ids.insert(hash64(record.text.substr(id.offset, id.length))).second) ++repeated;
    }
    const Names images = texts_of(record.text, strings, 2);
    if (!images.problem.empty()) return shards.add_bad(record, images.problem);
    shards.add(record, images.texts, whole_record(record, MediaType::kConversation));
  };
  std::map<std::string, int> times;
  for (const MixtureFile& part : listing.mixture) {
    const fs::path path = listing.root / part.file.path;
    const int time = ++times[part.file.path];
    shards.open(path, images_of(listing, part.file), time == 1 ? "" : fmt::format("#{}", time));
    read_sampled(path, part.sampling, add);
  }
  for (const auto* files : {&listing.lists, &listing.lines}) {
    for (const SourceFile& file : *files) {
      const fs::path path = listing.root / file.path;
      shards.open(path, images_of(listing, file));
      read_records(path, add);
    }
  }
  shards.finish();
  if (repeated > 0)
    log_warn("{}: {} records repeat an earlier id; all are kept", listing.root.string(), repeated);
}

std::string guess_records(const fs::path& path, const FieldNames& names) {
  const std::string record = first_record(path);
  const auto json = try_parse_json<nlohmann::json>(record);
  if (json.is_object() && json.contains("json_path")) return "mixture";
  if (json.is_object() && (json.contains("conversations") || json.contains("messages")))
    return "conversations";
  const auto wanted = image_names(names);
  for (const JsonString& string : find_json_strings(record, wanted).found) {
    const auto name =
        text::text_of_json_string(std::string_view(record).substr(string.offset, string.length));
    if (media_of(extension_of(name.text)) == MediaType::kImage) return "table";
  }
  if (json.is_object() && json.contains("text")) return "jsonl";
  return {};
}

}  // namespace chiliad::dataset::detail
