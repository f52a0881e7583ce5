import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.FloatDocValuesField;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.expressions.Expression;
import org.apache.lucene.expressions.SimpleBindings;
import org.apache.lucene.expressions.js.JavascriptCompiler;
import org.apache.lucene.expressions.js.VariableContext;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.DoubleValuesSource;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.TopFieldDocs;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Sorts documents by an expression, with Lucene itself: EXPRESSION is a file with the source; standard input has a line with
 * the names of the fields, and one with their values for each document, separated by tabs; an empty value is a field that the
 * document lacks. Prints the number and the score of each document, best first. Without standard input it only compiles.
 */
public class LuceneExpression {
  public static void main(String[] arguments) throws Exception {
    String source = Files.readString(Path.of(arguments[0]));
    Expression expression = JavascriptCompiler.compile(source);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String line = input.readLine();
    if (line == null) return;
    String[] names = line.split("\t", -1);
    try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
      int count = 0;
      try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig())) {
        for (line = input.readLine(); line != null; line = input.readLine(), count++) {
          Document document = new Document();
          document.add(new NumericDocValuesField("number", count));
          String[] values = line.split("\t", -1);
          for (int j = 0; j < names.length; j++)
            if (!values[j].isEmpty()) document.add(new FloatDocValuesField("f:" + names[j], Float.parseFloat(values[j])));
          writer.addDocument(document);
        }
      }
      SimpleBindings bindings = new SimpleBindings();
      for (String variable : expression.variables) bindings.add(variable, DoubleValuesSource.fromFloatField("f:" + field(variable)));
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        TopFieldDocs found =
            new IndexSearcher(reader).search(new MatchAllDocsQuery(), count, new Sort(expression.getSortField(bindings, true)));
        for (var hit : found.scoreDocs) System.out.println(hit.doc + "\t" + ((FieldDoc) hit).fields[0]);
      }
    }
  }

  /** The field of doc['field'].value, found as Elasticsearch and OpenSearch find it. */
  private static String field(String variable) {
    VariableContext[] parts = VariableContext.parse(variable);
    if (parts.length != 3
        || !parts[0].text.equals("doc")
        || parts[1].type != VariableContext.Type.STR_INDEX
        || !parts[2].text.equals("value")) throw new IllegalArgumentException("not a field: " + variable);
    return parts[1].text;
  }
}
