// Codes of the vector [1,2,3,4] by JDBC, passed in all ways that people pass it: a line for each.
import java.sql.*;

public class JdbcVectors {
	static void print(String name, PreparedStatement statement) throws SQLException {
		try (ResultSet result = statement.executeQuery()) {
			result.next();
			System.out.println("JDBC, " + name + ": " + result.getString(1));
		}
	}

	public static void main(String[] arguments) throws Exception {
		try (Connection connection = DriverManager.getConnection(arguments[0]);
				PreparedStatement statement = connection.prepareStatement("SELECT sketcher_hash('items_code_model', ?)::text")) {
			statement.setArray(1, connection.createArrayOf("float4", new Object[] {1f, 2f, 3f, 4f}));
			print("array of float4", statement);
			statement.setArray(1, connection.createArrayOf("float8", new Object[] {1.0, 2.0, 3.0, 4.0}));
			print("array of float8", statement);
			statement.setObject(1, new float[] {1, 2, 3, 4});
			print("float[]", statement);
			statement.setObject(1, new double[] {1, 2, 3, 4});
			print("double[]", statement);
			statement.setString(1, "[1,2,3,4]");
			print("string", statement);
		}
	}
}
