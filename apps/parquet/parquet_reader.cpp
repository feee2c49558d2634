// libchiliad_parquet.so: rows of pictures and captions out of parquet files, by Arrow.
// 1. The schema decides which leaves are read; nothing else of the file is.
// 2. A row group is read in batches of a few rows, its columns through a buffer each: memory is that of a
//    page of each column and of the batch, however large the row group is.
#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/dataset/parquet_api.h"

namespace {

constexpr int64_t kBufferBytes = 1 << 20;

struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(const arrow::Status& status) {
  if (!status.ok()) throw Problem(status.message());
}
template <typename T>
T take(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(separator, from), text.size());
    parts.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

/// "a\0b\0\0"
std::vector<std::string> names_of(const char* list) {
  std::vector<std::string> names;
  for (; *list != '\0'; list += std::strlen(list) + 1) names.emplace_back(list);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

using TypePtr = std::shared_ptr<arrow::DataType>;
using ArrayPtr = std::shared_ptr<arrow::Array>;

/// Without dictionaries and extensions around it.
TypePtr plain(TypePtr type) {
  for (;;) {
    if (type->id() == arrow::Type::DICTIONARY) {
      type = static_cast<const arrow::DictionaryType&>(*type).value_type();
    } else if (type->id() == arrow::Type::EXTENSION) {
      type = static_cast<const arrow::ExtensionType&>(*type).storage_type();
    } else {
      return type;
    }
  }
}

bool is_bytes(const TypePtr& type) {
  const auto id = plain(type)->id();
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW;
}
bool is_text(const TypePtr& type) {
  const auto id = plain(type)->id();
  return id == arrow::Type::STRING || id == arrow::Type::LARGE_STRING || id == arrow::Type::STRING_VIEW;
}
bool is_struct(const TypePtr& type) {
  return type->id() == arrow::Type::STRUCT;
}
bool is_text_list(const TypePtr& type) {
  if (type->id() == arrow::Type::LIST)
    return is_text(static_cast<const arrow::ListType&>(*type).value_type());
  return type->id() == arrow::Type::LARGE_LIST &&
         is_text(static_cast<const arrow::LargeListType&>(*type).value_type());
}

/// A column, or a field in it.
struct Field {
  std::vector<std::string> path;
  TypePtr type;
};

std::optional<Field> find_field(const arrow::Schema& schema, const std::string& key) {
  // A name with dots of its own counts before a path.
  if (const auto whole = schema.GetFieldByName(key)) return Field{{key}, whole->type()};
  const auto path = split(key, '.');
  auto field = schema.GetFieldByName(path.front());
  for (size_t i = 1; i < path.size() && field != nullptr; ++i) {
    if (!is_struct(field->type())) return std::nullopt;
    field = static_cast<const arrow::StructType&>(*field->type()).GetFieldByName(path[i]);
  }
  if (field == nullptr) return std::nullopt;
  return Field{path, field->type()};
}

std::string columns_of(const arrow::Schema& schema) {
  std::vector<std::string> columns;
  for (const auto& field : schema.fields())
    columns.push_back(field->name() + ": " + field->type()->ToString());
  return joined(columns);
}

/// The array of a field in a batch, and those around it, whose nulls count too.
struct FieldArrays {
  std::vector<ArrayPtr> around;
  ArrayPtr own;
  [[nodiscard]] bool is_null(int64_t row) const {
    return own == nullptr || own->IsNull(row) ||
           std::any_of(around.begin(), around.end(), [&](const auto& array) { return array->IsNull(row); });
  }
};

FieldArrays arrays_of(const arrow::RecordBatch& batch, const std::vector<std::string>& path) {
  FieldArrays arrays;
  arrays.own = batch.GetColumnByName(path.front());
  for (size_t i = 1; i < path.size() && arrays.own != nullptr; ++i) {
    arrays.around.push_back(arrays.own);
    arrays.own = static_cast<const arrow::StructArray&>(*arrays.around.back()).GetFieldByName(path[i]);
  }
  return arrays;
}

constexpr ChiliadParquetBytes kNull{nullptr, -1};

ChiliadParquetBytes bytes_at(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return kNull;
  const auto view = [](std::string_view bytes) {
    return ChiliadParquetBytes{bytes.data(), static_cast<int64_t>(bytes.size())};
  };
  switch (array.type_id()) {
    case arrow::Type::BINARY:
    case arrow::Type::STRING:
      return view(static_cast<const arrow::BinaryArray&>(array).GetView(row));
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::LARGE_STRING:
      return view(static_cast<const arrow::LargeBinaryArray&>(array).GetView(row));
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::STRING_VIEW:
      return view(static_cast<const arrow::BinaryViewArray&>(array).GetView(row));
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return bytes_at(*dictionary.dictionary(), dictionary.GetValueIndex(row));
    }
    case arrow::Type::EXTENSION:
      return bytes_at(*static_cast<const arrow::ExtensionArray&>(array).storage(), row);
    default:
      throw Problem("a column has values of " + array.type()->ToString());
  }
}

template <typename List>
void append_list(const arrow::Array& array, int64_t row, std::vector<ChiliadParquetBytes>& out) {
  const auto& list = static_cast<const List&>(array);
  for (int64_t i = list.value_offset(row); i < list.value_offset(row) + list.value_length(row); ++i) {
    const auto text = bytes_at(*list.values(), i);
    if (text.size >= 0) out.push_back(text);
  }
}

}  // namespace

struct ChiliadParquetReader {
 public:
  ChiliadParquetReader(const char* path, const char* image_keys, const char* caption_keys,
                       int64_t batch_rows) {
    parquet::ReaderProperties properties(arrow::default_memory_pool());
    properties.enable_buffered_stream();
    properties.set_buffer_size(kBufferBytes);
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(batch_rows);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(take(arrow::io::ReadableFile::Open(path)), properties));
    reader_ = take(builder.memory_pool(arrow::default_memory_pool())->properties(arrow_properties)->Build());
    const auto& metadata = *reader_->parquet_reader()->metadata();
    for (int g = 0; g < metadata.num_row_groups(); ++g)
      group_begin_.push_back(group_begin_.back() + metadata.RowGroup(g)->num_rows());
    std::shared_ptr<arrow::Schema> schema;
    check(reader_->GetSchema(&schema));
    choose_image(*schema, names_of(image_keys));
    choose_caption(*schema, names_of(caption_keys));
    choose_leaves(*metadata.schema());
  }

  [[nodiscard]] int64_t num_rows() const { return group_begin_.back(); }
  [[nodiscard]] int64_t group_end(int64_t row) const {
    return *std::upper_bound(group_begin_.begin(), group_begin_.end() - 1, row);
  }

  void seek(int64_t row) {
    batches_.reset();
    batch_.reset();
    row_ = row;
    if (row >= num_rows()) return;
    open_group();
    int64_t skip = row - group_begin_[static_cast<size_t>(group_)];
    while (skip > 0) {
      if (!read_batch()) throw Problem("a row group has fewer rows than the file says");
      at_ = std::min(skip, batch_->num_rows());
      skip -= at_;
    }
  }

  bool next(ChiliadParquetRow& out) {
    if (row_ >= num_rows()) return false;
    if (batches_ == nullptr) open_group();
    while (batch_ == nullptr || at_ >= batch_->num_rows()) {
      if (!read_batch()) throw Problem("a row group has fewer rows than the file says");
    }
    fill(out);
    ++at_;
    // The batch, which holds the row that is given out, stays until the next call.
    if (++row_ == group_begin_[static_cast<size_t>(group_) + 1]) batches_.reset();
    return true;
  }

  std::string error;

 private:
  [[noreturn]] static void refuse(const char* what, const std::vector<std::string>& keys,
                                  const arrow::Schema& schema, const char* option) {
    throw Problem("the columns are " + columns_of(schema) + ": expected " + what + " named " + joined(keys) +
                  ". Name it with " + option);
  }

  void choose_image(const arrow::Schema& schema, const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
      const auto field = find_field(schema, key);
      if (!field) continue;
      if (is_bytes(field->type)) {
        image_ = field->path;
        return;
      }
      if (!is_struct(field->type)) continue;
      const auto& type = static_cast<const arrow::StructType&>(*field->type);
      const auto bytes = type.GetFieldByName("bytes");
      if (bytes == nullptr || !is_bytes(bytes->type())) continue;
      image_ = field->path;
      image_.emplace_back("bytes");
      const auto path = type.GetFieldByName("path");
      if (path != nullptr && is_text(path->type())) {
        path_ = field->path;
        path_.emplace_back("path");
      }
      return;
    }
    refuse("bytes of pictures, or a struct {bytes, path}, one a row,", keys, schema, "--image-key");
  }

  void choose_caption(const arrow::Schema& schema, const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
      const auto field = find_field(schema, key);
      if (!field || (!is_text(field->type) && !is_text_list(field->type))) continue;
      caption_ = field->path;
      return;
    }
    refuse("captions, a text or a list of texts,", keys, schema, "--caption-key");
  }

  void choose_leaves(const parquet::SchemaDescriptor& schema) {
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const auto path = schema.Column(leaf)->path()->ToDotVector();
      const auto is_in = [&](const std::vector<std::string>& wanted) {
        return !wanted.empty() && wanted.size() <= path.size() &&
               std::equal(wanted.begin(), wanted.end(), path.begin());
      };
      if (is_in(image_) || is_in(path_) || is_in(caption_)) leaves_.push_back(leaf);
    }
  }

  void open_group() {
    const auto after = std::upper_bound(group_begin_.begin(), group_begin_.end(), row_);
    group_ = static_cast<int>(after - group_begin_.begin() - 1);
    batches_ = take(reader_->GetRecordBatchReader({group_}, leaves_));
    batch_.reset();
    at_ = 0;
  }

  bool read_batch() {
    check(batches_->ReadNext(&batch_));
    at_ = 0;
    if (batch_ == nullptr) return false;
    images_ = arrays_of(*batch_, image_);
    paths_ = path_.empty() ? FieldArrays{} : arrays_of(*batch_, path_);
    texts_ = arrays_of(*batch_, caption_);
    return true;
  }

  void fill(ChiliadParquetRow& out) {
    out.image = images_.is_null(at_) ? kNull : bytes_at(*images_.own, at_);
    out.path = paths_.is_null(at_) ? kNull : bytes_at(*paths_.own, at_);
    captions_.clear();
    if (!texts_.is_null(at_)) {
      if (texts_.own->type_id() == arrow::Type::LIST) {
        append_list<arrow::ListArray>(*texts_.own, at_, captions_);
      } else if (texts_.own->type_id() == arrow::Type::LARGE_LIST) {
        append_list<arrow::LargeListArray>(*texts_.own, at_, captions_);
      } else {
        const auto text = bytes_at(*texts_.own, at_);
        if (text.size >= 0) captions_.push_back(text);
      }
    }
    out.captions = captions_.data();
    out.num_captions = static_cast<int64_t>(captions_.size());
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int64_t> group_begin_{0};  // first row of each row group, and the end
  std::vector<std::string> image_, path_, caption_;
  std::vector<int> leaves_;
  int group_ = 0;
  std::shared_ptr<arrow::RecordBatchReader> batches_;  // as Arrow gives it; of the open row group
  std::shared_ptr<arrow::RecordBatch> batch_;          // the same
  FieldArrays images_, paths_, texts_;                 // of the batch
  std::vector<ChiliadParquetBytes> captions_;          // of the row
  int64_t row_ = 0;                                    // that comes next
  int64_t at_ = 0;                                     // the same in the batch
};

namespace {

ChiliadParquetReader* open_reader(const char* path, const char* image_keys, const char* caption_keys,
                                  int64_t batch_rows, char* error, int64_t error_bytes) {
  const auto fail = [&](const char* what) -> ChiliadParquetReader* {
    const auto size = std::min(std::strlen(what), static_cast<size_t>(error_bytes) - 1);
    std::memcpy(error, what, size);
    error[size] = '\0';
    return nullptr;
  };
  try {
    return new ChiliadParquetReader(path, image_keys, caption_keys, batch_rows);
  } catch (const std::exception& problem) {
    return fail(problem.what());
  } catch (...) {
    return fail("unknown problem");
  }
}

template <typename Call>
int guarded(ChiliadParquetReader* reader, const Call& call) {
  try {
    return call();
  } catch (const std::exception& problem) {
    reader->error = problem.what();
  } catch (...) {
    reader->error = "unknown problem";
  }
  return -1;
}

constexpr ChiliadParquetFunctions kFunctions{
    kChiliadParquetVersion,
    open_reader,
    [](ChiliadParquetReader* reader) { delete reader; },
    [](const ChiliadParquetReader* reader) { return reader->num_rows(); },
    [](const ChiliadParquetReader* reader, int64_t row) { return reader->group_end(row); },
    [](ChiliadParquetReader* reader, int64_t row) {
      return guarded(reader, [&] {
        reader->seek(row);
        return 0;
      });
    },
    [](ChiliadParquetReader* reader, ChiliadParquetRow* out) {
      return guarded(reader, [&] { return reader->next(*out) ? 1 : 0; });
    },
    [](const ChiliadParquetReader* reader) { return reader->error.c_str(); }};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ChiliadParquetFunctions* chiliad_parquet_functions() {
  return &kFunctions;
}
