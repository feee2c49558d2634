#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/dataset/detail/json_text.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

using OnRecord = std::function<void(const Record&)>;

/// Reads a JSON list record by record, in memory of one record (at most kMaxCaptionBytes; longer ones are a
/// problem). Entries that are no object are problems. Throws InvalidInput, with the byte, if the file is no
/// list, breaks off or is no JSON: which records follow would be a guess.
void read_json_list(const io::File& file, const OnRecord& on_record);

/// Reads lines that end at '\n', blank ones passed over, in memory of one line. A line is not looked into.
void read_lines(const io::File& file, const OnRecord& on_record);

/// Where a field stands in its row, with its quotes.
struct CsvField {
  uint32_t offset = 0;
  uint32_t length = 0;
};
using OnRow = std::function<void(const Record&, const std::vector<CsvField>&)>;

/// Reads rows by RFC 4180: fields between separators; one that begins with a quote ends at the next single
/// quote and may hold separators and line ends; rows end at '\n' or "\r\n"; empty rows are passed over. A
/// quote that is not closed is a problem of the row where it opens, which then holds the rest of the file.
void read_csv(const io::File& file, char separator, const OnRow& on_row);

}  // namespace chiliad::dataset::detail
