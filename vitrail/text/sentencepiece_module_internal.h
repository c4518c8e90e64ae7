// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface between the library and its SentencePiece module: a table of C functions, independent of the C++ ABI.
#include <cstddef>

namespace vitrail::text {

constexpr int kSentencePieceModuleVersion = 1;      // incremented with every change of the table
constexpr size_t kSentencePieceMessageBytes = 512;  // size of the buffer for an error message

struct SentencePieceModule {
  int version;
  // The model of serialized bytes, or null with the reason in `message` [kSentencePieceMessageBytes].
  void* (*open)(const char* bytes, size_t size, char* message);
  void (*close)(void* model);
  int (*size)(const void* model);                         // the number of pieces
  int (*piece_id)(const void* model, const char* piece);  // the unknown piece's id if there is no such piece
  // Calls add(context, id) for each piece.  Thread-safe.  Returns 0 on success.
  int (*encode)(const void* model, const char* text, size_t size, void* context, void (*add)(void* context, int id));
};

// The type and name of the only exported function of the module, and its file name.
using SentencePieceModuleEntry = const SentencePieceModule* (*)();
constexpr const char* kSentencePieceModuleEntry = "vitrail_sentencepiece_module";
constexpr const char* kSentencePieceModuleFile = "vitrail_sentencepiece.so";

}  // namespace vitrail::text
