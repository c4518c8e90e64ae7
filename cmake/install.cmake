# SPDX-License-Identifier: Apache-2.0
# Installs the program, the library, its headers, the bundled models, the recipes, the dataset of recipes/digits.json,
# and the CMake package of find_package(vitrail).
include(CMakePackageConfigHelpers)

install(TARGETS vitrail_lib EXPORT vitrailTargets)
install(TARGETS vitrail RUNTIME)
# Internal headers are not installed.  tools/check_layers.py checks that no public header includes one.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/vitrail DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN "*_internal.h" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/recipes
        DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail)
install(FILES ${PROJECT_SOURCE_DIR}/examples/digits.zip DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail/examples)
install(EXPORT vitrailTargets NAMESPACE vitrail:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/vitrailConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/vitrailConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vitrailConfig.cmake ${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)
