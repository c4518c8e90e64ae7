// SPDX-License-Identifier: Apache-2.0
// The SentencePiece module: built as a shared object of its own (vitrail_sentencepiece.so), which
// siglip_tokenizer.cpp loads.
#include <sentencepiece_processor.h>

#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "vitrail/text/sentencepiece_module_internal.h"

namespace vitrail::text {
namespace {

using sentencepiece::SentencePieceProcessor;

const SentencePieceProcessor& processor(const void* model) {
  return *static_cast<const SentencePieceProcessor*>(model);
}

void* open(const char* bytes, size_t size, char* message) {
  auto model = std::make_unique<SentencePieceProcessor>();
  const auto status = model->LoadFromSerializedProto({bytes, size});
  if (status.ok()) return model.release();
  std::snprintf(message, kSentencePieceMessageBytes, "%s", status.ToString().c_str());
  return nullptr;
}

void close(void* model) { delete static_cast<SentencePieceProcessor*>(model); }

int size(const void* model) { return processor(model).GetPieceSize(); }

int piece_id(const void* model, const char* piece) { return processor(model).PieceToId(piece); }

int encode(const void* model, const char* text, size_t size, void* context, void (*add)(void*, int)) {
  std::vector<int> ids;
  if (!processor(model).Encode({text, size}, &ids).ok()) return 1;
  for (const int id : ids) add(context, id);
  return 0;
}

}  // namespace
}  // namespace vitrail::text

extern "C" __attribute__((visibility("default"))) const vitrail::text::SentencePieceModule*
vitrail_sentencepiece_module() {
  using namespace vitrail::text;
  static const SentencePieceModule module{kSentencePieceModuleVersion, open, close, size, piece_id, encode};
  return &module;
}
