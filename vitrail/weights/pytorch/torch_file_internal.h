// SPDX-License-Identifier: Apache-2.0
#pragma once
// What torch.save writes: a zip archive (the default since PyTorch 1.6), or the older stream of pickles.
#include <memory>
#include <string_view>

#include "vitrail/base/zip.h"
#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// NAME/data.pkl describes the objects, NAME/data/KEY are the storages, stored at multiples of 64 bytes and so viewed
// where they lie.
//
// The tensors are those of the outermost dict, or of the dict inside it that training scripts put under one of these
// keys, looked for in this order, repeatedly: state_dict_ema, model_ema, state_dict, model, model_state_dict, module,
// teacher, student.  Other values are passed over.  Throws Error for a refused name, a damaged file, a big-endian one,
// or one without tensors.
std::unique_ptr<TensorFile> open_torch_zip(const FileBytes& bytes, ZipReader zip);
bool is_torch_zip(const ZipReader& zip);

// The legacy stream: magic number, protocol, system information, objects, storage keys, then every storage as its count
// and its bytes.  The same rules hold.
std::unique_ptr<TensorFile> open_torch_legacy(const FileBytes& bytes);
bool is_torch_legacy(std::string_view bytes);

}  // namespace vitrail::weights
