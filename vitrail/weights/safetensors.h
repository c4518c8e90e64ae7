// SPDX-License-Identifier: Apache-2.0
#pragma once
// The safetensors format (https://github.com/huggingface/safetensors): an 8-byte little-endian header length, a JSON
// header {name: {dtype, shape, data_offsets}}, then the tensors' bytes one after another.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Checks the whole header, as strictly as the reference implementation: its length (at most 100 MB, inside the file),
// its JSON (no key twice), and that the tensors cover the rest of the file exactly, without overlap or hole, each as
// long as its dtype and shape say.  Throws Error otherwise.
std::unique_ptr<TensorFile> open_safetensors(const FileBytes& bytes);

// Writes a file that the reference implementation opens: whole or not at all.  Tensors are laid out by falling element
// size, then by name, and the header is padded with spaces to a multiple of 8 bytes, so that every tensor is aligned.
// Tensors may be strided.  Throws Error for a name given twice, the reserved name "__metadata__", or a failed write.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace vitrail::weights
