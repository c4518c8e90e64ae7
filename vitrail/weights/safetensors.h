// SPDX-License-Identifier: Apache-2.0
#pragma once
// The safetensors format (https://github.com/huggingface/safetensors): an 8-byte little-endian header length, a JSON
// header {name: {dtype, shape, data_offsets}}, and the tensors' bytes.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/base/atomic_file.h"
#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Validates the header as strictly as the reference implementation: its length (at most 100 MB and inside the file),
// its JSON (no repeated key), and that the tensors cover the data exactly, without overlap or gap, each with the size
// of its dtype and shape.  Throws Error otherwise.
std::unique_ptr<TensorFile> open_safetensors(const FileBytes& bytes);

// Writes a file atomically, byte for byte as the reference implementation: tensors by descending element size, then by
// name; the header padded with spaces to a multiple of 8 bytes, so that every tensor is aligned.  Tensors may be
// strided.  Throws Error for a repeated name, the reserved name "__metadata__", or a failed write.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same into a file that the caller commits.  Errors name `where`.
void write_safetensors(AtomicFile& file, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata, const std::filesystem::path& where);

}  // namespace vitrail::weights
