// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npz: a zip archive of .npy files, stored (np.savez) or deflated (np.savez_compressed).
#include <memory>

#include "vitrail/base/zip.h"
#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Reads the header of every array; names are those of the entries without ".npy".  Arrays in Fortran order come as
// strided views.  Throws Error for an entry that is no array; for an array of objects or of a type the library does not
// have only when it is asked for.
std::unique_ptr<TensorFile> open_npz(const FileBytes& bytes, ZipReader zip);

// Whether an archive holds .npy files.
bool is_npz(const ZipReader& zip);

}  // namespace vitrail::weights
