// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npz: a zip archive of .npy files, stored (np.savez) or deflated (np.savez_compressed).
#include <memory>

#include "vitrail/base/zip_internal.h"
#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Reads the headers of all arrays; names are those of the entries without ".npy".  Arrays in Fortran order are strided
// views.  Throws Error for an entry that is no array.  Arrays of objects or of an unsupported type are an Error only
// when they are read.
std::unique_ptr<TensorFile> open_npz(const FileBytes& bytes, ZipReader zip);

// Whether the archive contains .npy files.
bool is_npz(const ZipReader& zip);

}  // namespace vitrail::weights
