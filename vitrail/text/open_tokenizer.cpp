// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/text/clip_tokenizer_internal.h"
#include "vitrail/text/gemma_tokenizer_internal.h"
#include "vitrail/text/siglip_tokenizer_internal.h"
#include "vitrail/text/tokenizer_files_internal.h"
#include "vitrail/text/tokenizer_json_internal.h"
#include "vitrail/text/unigram_tokenizer_internal.h"

namespace vitrail::text {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSentencePieceFiles[] = {"spiece.model", "sentencepiece.model"};

fs::path find_file(const fs::path& folder) {
  for (const char* name : kTokenizerFiles) {
    if (is_present(folder / name)) return folder / name;
  }
  throw Error(folder.string(), "a tokenizer for texts: one of " + join(kTokenizerFiles), "none of them");
}

std::unique_ptr<Tokenizer> open_bpe(BpeFile file, const fs::path& path, ClipForm form) {
  if (file.byte_fallback) return std::make_unique<GemmaTokenizer>(std::move(file), path.string());
  if (file.end_of_word_suffix == "</w>") return std::make_unique<ClipTokenizer>(std::move(file), path.string(), form);
  throw Error(path.string(), "CLIP's BPE (end_of_word_suffix \"</w>\") or Gemma's (byte_fallback)", "another BPE");
}

// Google's SigLIP folders have their pieces twice; transformers' SiglipTokenizer reads those of the SentencePiece
// model.
std::unique_ptr<Tokenizer> open_json(const fs::path& file, bool of_folder, ClipForm form) {
  const nlohmann::json json = read_json(file);
  if (model_type_of(json) != "Unigram") return open_bpe(read_tokenizer_json(json, file.string()), file, form);
  for (const char* name : kSentencePieceFiles) {
    const fs::path model = file.parent_path() / name;
    if (of_folder && is_present(model)) return std::make_unique<SiglipTokenizer>(model);
  }
  return std::make_unique<UnigramTokenizer>(read_unigram_json(json, file), file.string());
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& path, ClipForm form) {
  const bool of_folder = is_folder(path);
  const fs::path file = of_folder ? find_file(path) : path;
  const std::string extension = file.extension().string();
  if (file.filename() == "vocab.json")
    return open_bpe(read_vocab_and_merges(file, file.parent_path() / "merges.txt"), file, form);
  if (extension == ".json") return open_json(file, of_folder, form);
  if (extension == ".model") return std::make_unique<SiglipTokenizer>(file);
  if (extension == ".txt" || extension == ".gz") return open_bpe(read_simple_vocab(file), file, form);
  throw Error(file.string(), "a tokenizer's file: .json, .model, .txt or .gz", "another");
}

}  // namespace vitrail::text
