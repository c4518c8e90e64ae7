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
// The tensors are those of the dict that has the keys of a built-in family, at most four levels deep.  If several have,
// the one at index `choice` in the order of use is used (averaged weights before others, teachers before students, and
// averages that have not begun, with "n_averaged" 0, last), and a warning names it.  If none has, the dict under a
// common key ("state_dict", "model", …) or else the one with the most tensors is used.  Other values, and optimisers'
// moments under names of the weights, are ignored.  A TorchScript archive gives the parameters and buffers of its
// modules.  Throws Error for a global that runs code, a damaged or big-endian file, a whole module, or a file without
// tensors.
std::unique_ptr<TensorFile> open_torch_zip(const FileBytes& bytes, ZipReader zip, size_t choice = 0);
bool is_torch_zip(const ZipReader& zip);

// The legacy stream: pickles of magic number, protocol, system information, objects and storage keys, then each storage
// as its element count and bytes.  Tensors and errors as above.
std::unique_ptr<TensorFile> open_torch_legacy(const FileBytes& bytes, size_t choice = 0);
bool is_torch_legacy(std::string_view bytes);

}  // namespace vitrail::weights
