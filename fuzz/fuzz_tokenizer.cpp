// SPDX-License-Identifier: Apache-2.0
// Fuzzes tokenizer.json and what it makes of a text: the input's first line.  Every input must give ids or a
// vitrail::Error.  OpenCLIP's cleaning of the text must end.
#include <cstdlib>

#include "fuzz/inputs.h"
#include "vitrail/text/open_clip_text.h"
#include "vitrail/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  std::string_view input = fuzz::text_of(data, size);
  const std::string text = fuzz::cut(input, '\n');
  const std::filesystem::path file = folder.write("tokenizer.json", input);
  fuzz::attempt([&] { text::clean_canonicalize(text); });
  fuzz::attempt([&] {
    const auto tokenizer = text::open_tokenizer(file);
    for (const int64_t id : tokenizer->encode(text, 77)) {
      if (id < 0 || id >= tokenizer->vocab_size()) std::abort();
    }
  });
  return 0;
}
