// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/module_loader_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/canonical_text_internal.h"
#include "vitrail/text/siglip_tokenizer_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

constexpr size_t kMaxBytes = 256'000'000;
constexpr char32_t kSpaceSymbol = U'▁';
// In front of a text so that SentencePiece does not remove the space at its beginning; its pieces are dropped.
const std::string kPrefix = "<unk>";

const SentencePieceModule& sentencepiece() {
  static const SentencePieceModule& module = []() -> const SentencePieceModule& {
    void* const entry = load_module({.where = "SigLIP's tokenizer",
                                     .file = kSentencePieceModuleFile,
                                     .entry = kSentencePieceModuleEntry,
                                     .built = "where CMake finds SentencePiece and VITRAIL_SENTENCEPIECE is ON"});
    const SentencePieceModule* const loaded = reinterpret_cast<SentencePieceModuleEntry>(entry)();
    if (loaded->version != kSentencePieceModuleVersion) {
      throw Error("SigLIP's tokenizer", str("version ", kSentencePieceModuleVersion, " of ", kSentencePieceModuleFile),
                  str(loaded->version));
    }
    return *loaded;
  }();
  return module;
}

// big_vision's canonicalize_text: the order of its steps decides about spaces around punctuation.
std::string canonical(std::string_view text) {
  return to_utf8(with_single_spaces(without_punctuation(lower_text(U"▁" + code_points(text)))));
}

void* open_model(const SentencePieceModule& module, const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = read_file(file, kMaxBytes);
  char message[kSentencePieceMessageBytes] = "";
  void* const model = module.open(reinterpret_cast<const char*>(bytes.data()), bytes.size(), message);
  if (!model) throw Error(file.string(), "a SentencePiece model", std::string(message));
  return model;
}

}  // namespace

SiglipTokenizer::SiglipTokenizer(const std::filesystem::path& file)
    : module_(sentencepiece()),
      model_(open_model(module_, file), module_.close),
      prefix_pieces_(pieces_of(kPrefix).size()) {
  special_.eos = special_.pad = module_.piece_id(model_.get(), "</s>");
  if (special_.eos == module_.piece_id(model_.get(), "<unk>")) {
    throw Error(file.string(), "a SentencePiece model with the piece </s>, as SigLIP's", "one without it");
  }
  if (module_.piece_id(model_.get(), "<start_of_turn>") != module_.piece_id(model_.get(), "<unk>")) {
    throw Error(file.string(), "SigLIP's SentencePiece model", "Gemma's; SigLIP 2's tokenizer is its tokenizer.json");
  }
}

std::vector<int64_t> SiglipTokenizer::pieces_of(const std::string& text) const {
  std::vector<int64_t> ids;
  const auto add = [](void* to, int id) { static_cast<std::vector<int64_t>*>(to)->push_back(id); };
  if (module_.encode(model_.get(), text.data(), text.size(), &ids, add) != 0) {
    throw Error("text", "text that SentencePiece can encode", "\"" + text.substr(0, 80) + "\"");
  }
  return ids;
}

std::vector<int64_t> SiglipTokenizer::encode_content(std::string_view text) const {
  std::u32string spaced = code_points(text);
  for (char32_t& c : spaced) c = c == kSpaceSymbol ? U' ' : c;
  std::vector<int64_t> ids = pieces_of(kPrefix + canonical(to_utf8(spaced)));
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(prefix_pieces_, ids.size())));
  return ids;
}

}  // namespace vitrail::text
