# SPDX-License-Identifier: Apache-2.0
# Debian packages of an installed tree below /usr:   cpack -G DEB --config build/release/CPackConfig.cmake -B build/deb
#   vitrail         the program, its modules, recipes, completions and the manual page
#   vitrail-models  the bundled models
#   vitrail-mpi     the module for training in several processes
#   libvitrail0.2   the shared library
#   libvitrail-dev  the library with its headers, static and shared
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vitrail)
set(CPACK_PACKAGE_VENDOR "vitrail")
# The maintainer is who builds the packages, as for Debian's own tools.
set(VITRAIL_MAINTAINER "The vitrail authors <vitrail@users.noreply.github.com>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(VITRAIL_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_CONTACT "${VITRAIL_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime models development)
if(TARGET vitrail_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(VITRAIL_SHARED_PACKAGE libvitrail${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
if(TARGET vitrail_shared)
  list(APPEND CPACK_COMPONENTS_ALL shared)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# One package: its name, its section and a description.
function(vitrail_debian_package COMPONENT NAME SECTION DESCRIPTION)
  string(TOUPPER ${COMPONENT} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${NAME} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${SECTION} PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${DESCRIPTION}" PARENT_SCOPE)
  # What Debian's policy wants of each package: its licence and its changes.
  set(documents ${PROJECT_BINARY_DIR}/debian/${NAME})
  file(CONFIGURE OUTPUT ${documents}/copyright @ONLY CONTENT [[
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vitrail

Files: *
Copyright: 2026 The vitrail authors
License: Apache-2.0
 On Debian systems, the text of the licence is in /usr/share/common-licenses/Apache-2.0.  The file NOTICE names the
 works that vitrail includes, with their licences.
]])
  file(CONFIGURE OUTPUT ${documents}/changelog.Debian @ONLY CONTENT [[
vitrail (@PROJECT_VERSION@-1) unstable; urgency=medium

  * Version @PROJECT_VERSION@; its changes are in CHANGELOG.md of the sources.

 -- @VITRAIL_MAINTAINER@  Thu, 01 Jan 2026 00:00:00 +0000
]])
  execute_process(COMMAND gzip -9 -n -f ${documents}/changelog.Debian)
  install(FILES ${documents}/copyright ${documents}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${NAME} COMPONENT ${COMPONENT} EXCLUDE_FROM_ALL)
endfunction()

vitrail_debian_package(runtime vitrail science "\
Classifies images, computes features and attention maps, evaluates, converts
and trains Vision Transformers.")
vitrail_debian_package(models vitrail-models science "\
The bundled models: small classifiers and a small segmenter, with which
vitrail runs without a download.")
vitrail_debian_package(mpi vitrail-mpi science "\
The module with which vitrail trains in several processes by MPI.")
vitrail_debian_package(shared ${VITRAIL_SHARED_PACKAGE} libs "\
The shared library with the interfaces for C++ and C.")
vitrail_debian_package(development libvitrail-dev libdevel "\
The library with its headers for C++ and C, for CMake and pkg-config.")
set(CPACK_DEBIAN_MODELS_PACKAGE_ARCHITECTURE all)
# What other packages depend on for the library, and that its installation is told to the loader.
set(documents ${PROJECT_BINARY_DIR}/debian/${VITRAIL_SHARED_PACKAGE})
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
file(CONFIGURE OUTPUT ${documents}/shlibs @ONLY CONTENT
     "libvitrail @soversion@ @VITRAIL_SHARED_PACKAGE@ (>= @PROJECT_VERSION@)\n")
file(CONFIGURE OUTPUT ${documents}/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_SHARED_PACKAGE_CONTROL_EXTRA ${documents}/shlibs ${documents}/triggers)
set(CPACK_DEBIAN_SHARED_PACKAGE_RECOMMENDS "vitrail, vitrail-models")  # its modules, and the bundled models
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "vitrail-models, ca-certificates")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS vitrail-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "vitrail (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "zlib1g-dev, libjpeg-dev, libpng-dev, libwebp-dev, libgif-dev, libtiff-dev, libutf8proc-dev, libstdc++-12-dev")
if(TARGET vitrail_shared)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ${VITRAIL_SHARED_PACKAGE} (= ${PROJECT_VERSION}-1)")
endif()
if(VITRAIL_ONEDNN)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libdnnl-dev")
endif()
include(CPack)
