// Lists of records, captions and filters: every reader on the same bytes.
#include <string>
#include <vector>

#include "chiliad/dataset/detail/captions.h"
#include "chiliad/dataset/detail/json_text.h"
#include "chiliad/dataset/detail/records.h"
#include "chiliad/dataset/detail/where.h"
#include "chiliad/text/conversation_encoder.h"
#include "tests/fuzz/input_file.h"

namespace chiliad::fuzz {
namespace {

using namespace dataset::detail;

void look_into(const Record& record) {
  const std::vector<std::string> names{"image", "caption", "conversations"};
  for (const auto& found : find_json_strings(record.text, names).found)
    CHILIAD_CHECK_LE(size_t{found.offset} + found.length, record.text.size());
}

void check_fields(const Record& record, const std::vector<CsvField>& fields) {
  for (const auto& field : fields) CHILIAD_CHECK_LE(size_t{field.offset} + field.length, record.text.size());
}

void check_captions(const std::string& text, const std::vector<CaptionRange>& ranges) {
  for (const auto& range : ranges) CHILIAD_CHECK_LE(size_t{range.offset} + range.length, text.size());
}

/// Every id is a token or in one picture; pictures are whole.
void check_conversation(const std::string& text, const char* chat_template) {
  const auto encoder = text::ConversationEncoder::open(
      {.tokenizer = "", .chat_template = chat_template, .max_ids = 200, .pictures = {}});
  const std::vector<int64_t> positions(text::conversation_of_record(text).images.size(), 5);
  const auto made = encoder->encode(text, positions);
  CHILIAD_CHECK_EQ(made.ids.size(), made.supervised.size());
  int64_t in_pictures = 0;
  for (const int32_t id : made.ids) in_pictures += id == text::kImagePosition ? 1 : 0;
  CHILIAD_CHECK_EQ(in_pictures, static_cast<int64_t>(made.pictures.size()) * 5);
}

void run(const uint8_t* data, size_t size) {
  const InputFile input(data, size);
  const io::File file = io::File::open_read(input.path());
  const std::string text(reinterpret_cast<const char*>(data), size);
  accept_refusals([&] { read_json_list(file, look_into); });
  accept_refusals([&] { read_lines(file, look_into); });
  accept_refusals([&] { read_csv(file, ',', check_fields); });
  accept_refusals([&] { read_csv(file, '\t', check_fields); });
  accept_refusals([&] { check_captions(text, tuxpaint_captions(text)); });
  accept_refusals([&] { (void)Where::parse(text); });
  for (const auto& name : text::chat_templates())
    accept_refusals([&] { check_conversation(text, name.c_str()); });
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(data, size);
  return 0;
}
