// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of torch.save: a zip archive (the default since PyTorch 1.6) or the legacy stream of pickles.
#include <memory>
#include <string_view>

#include "vitrail/base/zip_internal.h"
#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// The archive's NAME/data.pkl describes the objects.  NAME/data/KEY are the storages at multiples of 64 bytes, so
// tensors are views of the file.
//
// The tensors are those of the outermost dict, or of a dict that training scripts store in it under one of these keys,
// tried in this order and repeatedly: state_dict_ema, model_ema, state_dict, model, model_state_dict, module, teacher,
// student.  Other values are ignored.  Throws Error for a refused global, a damaged or big-endian file, or a file
// without tensors.
std::unique_ptr<TensorFile> open_torch_zip(const FileBytes& bytes, ZipReader zip);
bool is_torch_zip(const ZipReader& zip);

// The legacy stream: pickles of magic number, protocol, system information, objects and storage keys, then each storage
// as its element count and bytes.  Tensors and errors as above.
std::unique_ptr<TensorFile> open_torch_legacy(const FileBytes& bytes);
bool is_torch_legacy(std::string_view bytes);

}  // namespace vitrail::weights
