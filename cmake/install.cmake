# What is installed: headers, the libraries, their .pc files, the CMake package weir, man pages. The program's
# rule is in agent/CMakeLists.txt. No path of the build machine ends up in any of it.
include(CMakePackageConfigHelpers)

set(without_client)
if(NOT WEIR_CLIENT)
  set(without_client PATTERN "client.h" EXCLUDE)
endif()
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" ${without_client})
install(TARGETS weir_static weir_shared EXPORT weirTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir})
# libweir-client is a component, for who wants it must have libcurl.
if(WEIR_CLIENT)
  install(TARGETS weir_client_static weir_client_shared EXPORT weirClientTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT weirClientTargets NAMESPACE weir:: DESTINATION ${package_dir})
endif()
configure_package_config_file(cmake/weirConfig.cmake.in ${PROJECT_BINARY_DIR}/weirConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break the ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${package_dir})

# weir.pc finds its prefix from where it lies, so that a tree can be installed anywhere and moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}
  OUTPUT_VARIABLE PC_PREFIX_FROM_PC)
set(pc_files weir)
if(WEIR_CLIENT)
  list(APPEND pc_files weir-client)
endif()
foreach(name ${pc_files})
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkgconfig_dir})
endforeach()

file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.[1-9])
foreach(page ${man_pages})
  cmake_path(GET page EXTENSION LAST_ONLY section)
  string(SUBSTRING ${section} 1 1 section)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
