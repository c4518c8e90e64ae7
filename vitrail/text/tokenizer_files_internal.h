// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vitrail::text {

// The files of tokenizers that open_tokenizer() reads, in the order in which it looks for them in a folder.
inline constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                                  "vocab.json",
                                                  "spiece.model",
                                                  "sentencepiece.model",
                                                  "bpe_simple_vocab_16e6.txt",
                                                  "bpe_simple_vocab_16e6.txt.gz"};
// What it reads beside one of them.
inline constexpr const char* kTokenizerCompanions[] = {"merges.txt", "added_tokens.json", "special_tokens_map.json",
                                                       "tokenizer_config.json"};

}  // namespace vitrail::text
