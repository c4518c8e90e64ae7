// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokenizers of text towers: text to token ids.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

// Immutable; encode() is thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // The ids of a text in UTF-8, with the model's special tokens, and without padding.  A text of more than `max_length`
  // ids is cut, with a warning; the special tokens remain.  Throws Error for text that is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, int64_t max_length) const;

  virtual int64_t vocab_size() const = 0;  // one more than the largest id
  int64_t eos_id() const { return special_.eos; }
  int64_t pad_id() const { return special_.pad; }
  // Whether texts are padded to the context length: the tower then attends to the padding, and was trained to.
  bool pads_to_context() const { return special_.pads_to_context; }

 protected:
  struct SpecialTokens {
    std::optional<int64_t> bos{};  // in front of the text; none for some tokenizers
    int64_t eos = 0;               // behind the text
    int64_t pad = 0;               // what follows the text in a batch
    bool pads_to_context = true;
  };
  SpecialTokens special_;  // set by the constructor of the derived class

 private:
  // The ids without special tokens.
  virtual std::vector<int64_t> encode_content(std::string_view text) const = 0;
};

// How CLIP's texts are split: as transformers' CLIPTokenizer does, which normalises them, or as OpenCLIP's
// SimpleTokenizer, for texts that functions of open_clip_text.h have cleaned.  Others are equal in both.
enum class ClipForm : uint8_t { transformers, open_clip };

// Opens a tokenizer: a folder or a file of it.  Of a folder, the first existing one of
//   tokenizer.json                           CLIP, SigLIP 2 (Gemma); a SentencePiece model beside one of type Unigram
//   vocab.json with merges.txt               CLIP
//   spiece.model, sentencepiece.model        SigLIP; needs the module vitrail_sentencepiece
//   bpe_simple_vocab_16e6.txt, .txt.gz       CLIP: OpenAI's and OpenCLIP's file
// Throws Error if there is none of them, for a malformed file and for one of another kind of tokenizer.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path, ClipForm form = ClipForm::transformers);

}  // namespace vitrail::text
