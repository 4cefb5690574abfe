// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * {@code Unpack JAR DIR}: the classes of a dd-java-agent jar as an ordinary class path.
 *
 * <p>The agent hides most of its classes from the application: they lie below a folder a subsystem,
 * with the ending .classdata. Here those of span stats and trace encoding get their own path and
 * ending back.
 */
public final class Unpack {
  private static final List<String> HIDDEN = List.of("trace/", "shared/", "metrics/");

  /** Where an entry belongs, or null where it is not wanted. */
  private static String placeOf(String name) {
    for (String folder : HIDDEN) {
      if (name.startsWith(folder)) {
        return name.substring(folder.length()).replaceFirst("\\.classdata$", ".class");
      }
    }
    return name.startsWith("datadog/") || name.startsWith("META-INF/services/") ? name : null;
  }

  public static void main(String[] args) throws IOException {
    Path root = Paths.get(args[1]).toAbsolutePath().normalize();
    Set<String> seen = new HashSet<>(); // the first of a name wins, as on a class path
    try (ZipFile jar = new ZipFile(args[0])) {
      for (ZipEntry entry : Collections.list(jar.entries())) {
        String place = entry.isDirectory() ? null : placeOf(entry.getName());
        if (place == null || !seen.add(place)) {
          continue;
        }
        Path to = root.resolve(place).normalize();
        if (!to.startsWith(root)) {
          throw new IOException("outside of the folder: " + place);
        }
        Files.createDirectories(to.getParent());
        try (InputStream in = jar.getInputStream(entry)) {
          Files.copy(in, to, StandardCopyOption.REPLACE_EXISTING);
        }
      }
    }
  }
}
