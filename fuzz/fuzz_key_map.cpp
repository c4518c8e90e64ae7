// SPDX-License-Identifier: Apache-2.0
// Fuzzes the key map parser and applies the result to keys and shapes.  Every input must give a mapping or a
// vitrail::Error.  Keys to match follow the first zero byte, one per line.
//   corpus: vitrail/weights/key_maps/*.json
#include <algorithm>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/weights/key_map.h"

namespace {

void try_rearrange(const vitrail::weights::KeyRule& rule) {
  using vitrail::Shape;
  for (const Shape& shape : {Shape{}, Shape{12}, Shape{4, 6}, Shape{2, 3, 4}, Shape{1, 2, 2, 3}}) {
    try {
      rule.rearrange->apply(vitrail::Tensor::zeros(shape), {{"p1", 2}, {"p2", 2}}, "fuzz").clone();
    } catch (const vitrail::Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail::weights;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  try {
    const KeyMap map = KeyMap::parse(text.substr(0, end), "fuzz");
    std::vector<std::string> keys{"blocks.0.attn.qkv.weight", "encoder.layer.11.attention.query.bias"};
    for (size_t at = end; at != std::string::npos && keys.size() < 6;) {
      const size_t line = text.find('\n', at + 1);
      keys.push_back(text.substr(at + 1, std::min<size_t>(line - at - 1, 128)));
      at = line;
    }
    for (const std::string& key : keys) {
      map.match(key);
      map.match_module(key);
    }
    for (const KeyRule& rule : map.rules()) {
      if (rule.rearrange) try_rearrange(rule);
    }
    map.recognises(keys);
  } catch (const vitrail::Error&) {
  }
  return 0;
}
