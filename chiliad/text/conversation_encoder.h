#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/text/conversation.h"
#include "chiliad/text/tokenizer.h"

namespace chiliad::text {

/// The id at every position of a picture: no token of any vocabulary.
inline constexpr int32_t kImagePosition = -200;

/// Positions of one picture in a conversation.
struct PictureRun {
  int64_t first = 0;
  int64_t count = 0;
};

/// A conversation as a training sequence.
struct EncodedConversation {
  std::vector<int32_t> ids;         ///< kImagePosition at the positions of pictures
  std::vector<uint8_t> supervised;  ///< [ids]: 1 at the tokens of an answer, and at the token that ends it
  /// Of the record's pictures, in order; those behind the cut are left out. Never cut in their middle.
  std::vector<PictureRun> pictures;
  std::string refusal;  ///< why there is none; the rest is then empty
};

/// What the columns of counts of an index of conversations are keyed by.
struct ConversationKeys {
  Digest ids;        ///< all ids of a conversation, those of pictures too; 0: it cannot be trained on
  Digest positions;  ///< those of its pictures
  Digest tiles;      ///< that the vision encoder sees
};

/// Conversations as training sequences by a chat template. Immutable, thread-safe.
class ConversationEncoder {
 public:
  struct Options {
    std::string tokenizer;      ///< as open_tokenizer; empty: bytes
    std::string chat_template;  ///< one of chat_templates()
    int64_t max_ids = 1025;     ///< longer ones are cut there, before a picture where that lies in one
    Digest pictures{};          ///< of the rule that gives pictures their positions
  };
  /// Throws InvalidInput as open_tokenizer, for a template that is not known, and where the template's tokens
  /// are none of the tokenizer's.
  [[nodiscard]] static std::shared_ptr<const ConversationEncoder> open(const Options& options);

  /// `positions`: of each picture of the record, in order.
  [[nodiscard]] EncodedConversation encode(std::string_view record, std::span<const int64_t> positions) const;
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Of all options.
  [[nodiscard]] Digest digest() const;
  [[nodiscard]] ConversationKeys keys() const;

 private:
  explicit ConversationEncoder(Options options, std::unique_ptr<Tokenizer> tokenizer)
      : options_(std::move(options)), tokenizer_(std::move(tokenizer)) {}

  Options options_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

/// plain (LLaVA's first stage: the picture, then the answer), vicuna (LLaVA-1.5), chatml (Qwen), llama3.
[[nodiscard]] const std::vector<std::string>& chat_templates();

/// A piece of a conversation in its template: pieces one after another are the text.
struct ChatPiece {
  std::string text;
  bool supervised = false;
};
/// The conversation with its `<image>` marks, by a template of that list.
[[nodiscard]] std::vector<ChatPiece> apply_chat_template(const Conversation& conversation,
                                                         std::string_view chat_template);

}  // namespace chiliad::text
