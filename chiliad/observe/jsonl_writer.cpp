#include "chiliad/observe/jsonl_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"

namespace chiliad::observe {

JsonlWriter::JsonlWriter(std::filesystem::path path) : path_(std::move(path)) {
  try {
    open();
  } catch (const Unavailable& error) {
    log_warn("{}. The run goes on; these lines are lost until the file can be opened", error.what());
  }
}

void JsonlWriter::open() {
  file_ = io::File::open_append(path_);
  const int64_t size = file_->size();
  if (size == 0) return;
  std::array<std::byte, 1> last{};
  io::File::open_read(path_).read_at(size - 1, last);
  torn_ = last[0] != std::byte{'\n'};
}

void JsonlWriter::append(std::string_view line) {
  std::string text = torn_ ? "\n" : "";
  text += line;
  std::replace(text.begin() + (torn_ ? 1 : 0), text.end(), '\n', ' ');
  text += '\n';
  try {
    if (!file_.has_value()) open();
    file_->write(text);
    torn_ = false;
  } catch (const Unavailable& error) {
    torn_ = true;
    if (num_lost_++ == 0)
      log_warn("{}. The run goes on; lines of this file are lost meanwhile", error.what());
  }
}

}  // namespace chiliad::observe
