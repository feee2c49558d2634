#include "chiliad/text/conversation_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/plain_bytes.h"

namespace chiliad::text {
namespace {

constexpr size_t kMaxTurns = 1024;  // the text before each is tokenized to find where it begins

/// Text between two pictures: tokenized as a whole, as LLaVA does.
struct Chunk {
  std::vector<ChatPiece> pieces;
};

/// Cuts the pieces at the marks: chunk, picture, chunk, ..., chunk.
std::vector<Chunk> chunks_of(const std::vector<ChatPiece>& pieces) {
  std::vector<Chunk> chunks(1);
  for (const ChatPiece& piece : pieces) {
    const std::string_view text = piece.text;
    size_t from = 0;
    for (size_t at = text.find(kImageMark); at != std::string_view::npos; at = text.find(kImageMark, from)) {
      chunks.back().pieces.push_back({std::string(text.substr(from, at - from)), piece.supervised});
      chunks.emplace_back();
      from = at + kImageMark.size();
    }
    chunks.back().pieces.push_back({std::string(text.substr(from)), piece.supervised});
  }
  return chunks;
}

size_t common_begin(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

class SequenceMaker {
 public:
  SequenceMaker(const Tokenizer& tokenizer, EncodedConversation& made) : tokenizer_(tokenizer), made_(made) {}

  /// The tokens are those of the whole chunk. A piece begins at the first token that differs from those of
  /// the text before it, without white space at its end, which tokenizers put before the next word.
  void add_chunk(const Chunk& chunk, bool is_first) {
    std::string text;
    for (const ChatPiece& piece : chunk.pieces) text += piece.text;
    if (text.empty() && !is_first) return;
    const auto encode = [&](std::string_view part) {
      if (!is_first) return tokenizer_.encode(part);
      const auto framed = tokenizer_.encode_with_special(part);
      auto ids = tokenizer_.encode(part);  // of the frame its begin alone: what ends a document is no turn
      ids.insert(ids.begin(), framed.begin(), framed.begin() + tokenizer_.frame_begin());
      return ids;
    };
    const auto ids = encode(text);
    const size_t first = made_.ids.size();
    made_.ids.insert(made_.ids.end(), ids.begin(), ids.end());
    made_.supervised.resize(made_.ids.size(), 0);
    std::string before;
    size_t begin = 0;
    for (size_t p = 0; p < chunk.pieces.size(); ++p) {
      before += chunk.pieces[p].text;
      size_t end = ids.size();
      if (p + 1 < chunk.pieces.size()) end = common_begin(encode(without_end_space(before)), ids);
      end = std::max(end, begin);
      if (chunk.pieces[p].supervised)
        std::fill(made_.supervised.begin() + static_cast<ptrdiff_t>(first + begin),
                  made_.supervised.begin() + static_cast<ptrdiff_t>(first + end), 1);
      begin = end;
    }
  }

  void add_picture(int64_t positions) {
    made_.pictures.push_back({static_cast<int64_t>(made_.ids.size()), positions});
    made_.ids.insert(made_.ids.end(), static_cast<size_t>(positions), kImagePosition);
    made_.supervised.resize(made_.ids.size(), 0);
  }

 private:
  static std::string_view without_end_space(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }

  const Tokenizer& tokenizer_;
  EncodedConversation& made_;
};

/// At most so many ids; before the first picture that would not be whole.
void cut(int64_t max_ids, EncodedConversation& made) {
  auto length = std::min(max_ids, static_cast<int64_t>(made.ids.size()));
  for (size_t p = 0; p < made.pictures.size(); ++p) {
    const PictureRun& run = made.pictures[p];
    // A picture that nothing follows is no use: its last position has no target.
    if (run.first + run.count < length) continue;
    length = std::min(length, run.first);
    made.pictures.resize(p);
    break;
  }
  made.ids.resize(static_cast<size_t>(length));
  made.supervised.resize(static_cast<size_t>(length));
}

}  // namespace

std::shared_ptr<const ConversationEncoder> ConversationEncoder::open(const Options& options) {
  const auto& names = chat_templates();
  if (std::find(names.begin(), names.end(), options.chat_template) == names.end()) {
    throw InvalidInput("template", fmt::format("expected one of {}, got '{}'", fmt::join(names, ", "),
                                               options.chat_template));
  }
  auto tokenizer = options.tokenizer.empty() ? detail::plain_bytes() : open_tokenizer(options.tokenizer);
  const std::string wanted = options.chat_template == "chatml"   ? "<|im_end|>"
                             : options.chat_template == "llama3" ? "<|eot_id|>"
                                                                 : "";
  if (!wanted.empty() && !options.tokenizer.empty() && !tokenizer->id_of(wanted)) {
    throw InvalidInput(options.tokenizer,
                       fmt::format("has no token {}, which the template {} ends turns with. Choose the "
                                   "template that the model was trained with",
                                   wanted, options.chat_template));
  }
  return std::shared_ptr<const ConversationEncoder>(new ConversationEncoder(options, std::move(tokenizer)));
}

EncodedConversation ConversationEncoder::encode(std::string_view record,
                                                std::span<const int64_t> positions) const {
  EncodedConversation made;
  const Conversation conversation = conversation_of_record(record);
  made.refusal = conversation.refusal;
  if (made.refusal.empty() && conversation.images.size() != positions.size())
    made.refusal = fmt::format("has {} pictures, expected {}", positions.size(), conversation.images.size());
  if (conversation.turns.size() > kMaxTurns)
    made.refusal = fmt::format("has {} turns, expected at most {}", conversation.turns.size(), kMaxTurns);
  if (!made.refusal.empty()) return made;
  const auto chunks = chunks_of(apply_chat_template(conversation, options_.chat_template));
  CHILIAD_CHECK_EQ(chunks.size(), positions.size() + 1);
  SequenceMaker maker(*tokenizer_, made);
  for (size_t c = 0; c < chunks.size(); ++c) {
    if (c > 0) maker.add_picture(positions[c - 1]);
    maker.add_chunk(chunks[c], c == 0);
  }
  cut(options_.max_ids, made);
  return made;
}

Digest ConversationEncoder::digest() const {
  return Hasher()
      .add("chiliad conversations 1")
      .add(tokenizer_->digest())
      .add(options_.chat_template)
      .add(options_.max_ids)
      .add(options_.pictures)
      .digest();
}

ConversationKeys ConversationEncoder::keys() const {
  const Digest ids = digest();
  return {ids, Hasher().add("positions").add(ids).digest(), Hasher().add("tiles").add(ids).digest()};
}

}  // namespace chiliad::text
