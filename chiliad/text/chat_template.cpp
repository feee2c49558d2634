#include "chiliad/base/error.h"
#include "chiliad/text/conversation_encoder.h"

namespace chiliad::text {
namespace {

/// What stands around a turn. `answer`: before an answer that the model writes.
struct Frame {
  std::string system;  ///< where the record has none; with its frame
  std::string system_begin, system_end;
  std::string user_begin, user_end;
  std::string answer_begin, answer_end;
  std::string between;  ///< behind an answer, before the next question; not supervised
};

const Frame& frame_of(std::string_view name) {
  static const Frame kVicuna{
      "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
      "detailed, and polite answers to the user's questions.",
      "",
      " ",
      "USER: ",
      " ",
      "ASSISTANT: ",
      "</s>",
      ""};
  static const Frame kChatml{"You are a helpful assistant.",
                             "<|im_start|>system\n",
                             "<|im_end|>\n",
                             "<|im_start|>user\n",
                             "<|im_end|>\n",
                             "<|im_start|>assistant\n",
                             "<|im_end|>",
                             "\n"};
  static const Frame kLlama3{"",           "<|start_header_id|>system<|end_header_id|>\n\n",
                             "<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\n",
                             "<|eot_id|>", "<|start_header_id|>assistant<|end_header_id|>\n\n",
                             "<|eot_id|>", ""};
  if (name == "vicuna") return kVicuna;
  CHILIAD_CHECK(name == "chatml" || name == "llama3", "chat template '{}'", name);
  return name == "chatml" ? kChatml : kLlama3;
}

/// Marks that the record does not have stand before its first question, a line each.
std::string leading_marks(const Conversation& conversation) {
  std::string marks;
  if (conversation.num_marks > 0) return marks;
  for (size_t i = 0; i < conversation.images.size(); ++i) marks += std::string(kImageMark) + "\n";
  return marks;
}

std::string without_marks(std::string text) {
  for (size_t at = text.find(kImageMark); at != std::string::npos; at = text.find(kImageMark, at))
    text.erase(at, kImageMark.size());
  return text;
}

/// LLaVA's first stage: pictures, then what is said of them; questions are passed over.
std::vector<ChatPiece> plain_pieces(const Conversation& conversation) {
  ChatPiece pictures;
  for (size_t i = 0; i < conversation.images.size(); ++i) pictures.text += kImageMark;
  std::vector<ChatPiece> pieces{pictures};
  for (const Turn& turn : conversation.turns) {
    if (turn.role == Role::kAssistant) pieces.push_back({without_marks(turn.text) + "\n", true});
  }
  return pieces;
}

}  // namespace

const std::vector<std::string>& chat_templates() {
  static const std::vector<std::string> kNames{"plain", "vicuna", "chatml", "llama3"};
  return kNames;
}

std::vector<ChatPiece> apply_chat_template(const Conversation& conversation, std::string_view chat_template) {
  if (chat_template == "plain") return plain_pieces(conversation);
  const Frame& frame = frame_of(chat_template);
  std::vector<ChatPiece> pieces;
  std::string system = frame.system;
  std::string before = leading_marks(conversation);
  if (!conversation.turns.empty() && conversation.turns.front().role == Role::kSystem)
    system = conversation.turns.front().text;
  if (!system.empty()) pieces.push_back({frame.system_begin + system + frame.system_end, false});
  for (const Turn& turn : conversation.turns) {
    if (turn.role == Role::kUser) {
      pieces.push_back({frame.user_begin + before + turn.text + frame.user_end + frame.answer_begin, false});
      before.clear();
    } else if (turn.role == Role::kAssistant) {
      pieces.push_back({turn.text + frame.answer_end, true});
      if (!frame.between.empty()) pieces.push_back({frame.between, false});
    }
  }
  return pieces;
}

}  // namespace chiliad::text
